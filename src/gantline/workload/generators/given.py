"""Settings that were given by name: each must be known, and is read by the reader of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gantline.core.errors import near
from gantline.workload.generators.quantities import fault

Reader = Callable[[object, str], object]


def read_given(given: Mapping[str, object], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The values of the settings that were given; an unknown name is refused with the nearest known one."""
    for name in given:
        if name not in readers:
            fix = _instead_of_load(readers) if name == "load" else near(str(name), readers)
            raise fault(str(name), "there is no such setting", fix)
    return {name: readers[name](value, name) for name, value in given.items()}


def _instead_of_load(readers: Mapping[str, Reader]) -> str:
    """How a generator that knows no cluster is made to send jobs sooner or later."""
    if "jobs_per_hour" in readers:
        return "the load of this generator is jobs_per_hour; in a sweep --vary trace.jobs_per_hour=4,8"
    return "the arrivals of this generator are given; in a sweep --vary trace.scale=0.5,2 halves and doubles its load"
