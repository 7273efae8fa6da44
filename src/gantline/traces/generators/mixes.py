"""A mix: a few values and how often each occurs, as in ``1:0.7, 2:0.1, 4:0.15, 8:0.05``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.traces.generators.quantities import fault, number

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
