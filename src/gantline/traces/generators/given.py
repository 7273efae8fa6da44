"""Settings that were given by name: each must be known, and is read by the reader of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from gantline.core.errors import near
from gantline.traces.generators.quantities import fault, number, truth, whole, word

Settings = TypeVar("Settings")
Reader = Callable[[object, str], object]
_BY_TYPE: Mapping[object, Reader] = {int: whole, float: number, float | None: number, str: word, bool: truth}


def read_given(given: Mapping[str, object], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The values of the settings that were given; an unknown name is refused with the nearest known one."""
    for name in given:
        if name not in readers:
            fix = _instead_of_load(readers) if name == "load" else near(str(name), readers)
            raise fault(str(name), "there is no such setting", fix)
    return {name: readers[name](value, name) for name, value in given.items()}


def settings_of(kind: type[Settings], given: Mapping[str, object], **readers: Reader) -> Settings:
    """Settings from what was given: each is read as the type of its field says, unless a reader of its own is named."""
    known = {name: readers.get(name) or _BY_TYPE[of] for name, of in get_type_hints(kind).items()}
    return kind(**read_given(given, known))


def _instead_of_load(readers: Mapping[str, Reader]) -> str:
    """How a generator that knows no cluster is made to send jobs sooner or later."""
    if "jobs_per_hour" in readers:
        return "the load of this generator is jobs_per_hour; in a sweep --vary trace.jobs_per_hour=4,8"
    return "the arrivals of this generator are given; in a sweep --vary trace.scale=0.5,2 halves and doubles its load"
