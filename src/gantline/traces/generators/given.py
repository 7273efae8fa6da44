"""Settings of generators as people write them: numbers, times, names and mixes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError, near
from gantline.core.fields import seconds as parse_seconds


def fault(field: str, what: str, fix: str = "") -> UsageError:
    """The error for a setting: which one, what is wrong with it, and what would be right."""
    return UsageError(what, where=_place(field), fix=fix)


def number(value: object, field: str) -> float:
    """A finite number."""
    try:
        if isinstance(value, bool):
            raise ValueError
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise fault(field, f"{value!r} is not a number") from None
    if not math.isfinite(found):
        raise fault(field, f"{value!r} is not a finite number")
    return found


def whole(value: object, field: str) -> int:
    """A whole number."""
    found = number(value, field)
    if found != int(found):
        raise fault(field, f"{value!r} is not a whole number")
    return int(found)


def word(value: object, field: str) -> str:
    """A name: some text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise fault(field, f"{value!r} is not a name")
    return value.strip()


def truth(value: object, field: str) -> bool:
    """Yes or no, as YAML and the command line write it."""
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = value if isinstance(value, bool) else known.get(str(value).strip().lower())
    if found is None:
        raise fault(field, f"{value!r} is neither true nor false")
    return found


def seconds(value: object, field: str) -> float:
    """A time in seconds: a number, or text with a unit such as ``90s``, ``15m``, ``4h``, ``7d``."""
    found = parse_seconds(value, _place(field)) if isinstance(value, str) else value
    return number(found, field)


def check_above_zero(settings: object, *names: str) -> None:
    """Refuse settings of which one of these is zero or less."""
    for name in names:
        if getattr(settings, name) <= 0:
            raise fault(name, f"{getattr(settings, name)} is not above zero")


def _place(field: str) -> str:
    return f"setting '{field}'"


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


V = TypeVar("V", int, float, str)


@dataclass(frozen=True, slots=True)
class Mix(Generic[V]):
    """Values with weights; the weights need not add up to one."""

    values: tuple[V, ...]
    weights: tuple[float, ...]

    @property
    def shares(self) -> Floats:
        """The weights, scaled to add up to one."""
        weights = np.asarray(self.weights, dtype=np.float64)
        return weights / weights.sum()

    def pick(self, uniforms: Floats) -> NDArray[np.int64]:
        """Which value each uniform number selects, as an index."""
        ladder = np.cumsum(self.shares)[:-1]
        return np.searchsorted(ladder, uniforms, side="right")


def mix_of(value: object, field: str, read: Callable[[object, str], V]) -> Mix[V]:
    """Read a mix from a mapping, from ``value:weight`` pairs, or from a single value that always occurs."""
    if isinstance(value, Mix):
        return value
    pairs: list[tuple[object, object]]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        split = [part.rpartition(":") if ":" in part else (part, ":", "1") for part in parts]
        pairs = [(name.strip(), weight) for name, _, weight in split]
    else:
        pairs = [(value, 1.0)]
    if not pairs:
        raise fault(field, "the mix is empty", "give value:weight pairs, as in 1:0.7,2:0.3")
    values = tuple(read(name, field) for name, _ in pairs)
    weights = tuple(number(weight, field) for _, weight in pairs)
    if len(set(values)) != len(values):
        raise fault(field, "a value occurs twice in the mix")
    if min(weights) < 0 or sum(weights) <= 0:
        raise fault(field, "weights must not be negative and must not all be zero")
    return Mix(values, weights)


def zipf_mix(names: tuple[str, ...], skew: float) -> Mix[str]:
    """Names whose weights fall as ``1 / rank**skew``: a few heavy users and many light ones."""
    ranks = np.arange(1, len(names) + 1, dtype=np.float64)
    return Mix(names, tuple(float(w) for w in ranks**-skew))
