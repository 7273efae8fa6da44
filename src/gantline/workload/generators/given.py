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
            raise fault(str(name), "there is no such setting", near(str(name), readers))
    return {name: readers[name](value, name) for name, value in given.items()}
