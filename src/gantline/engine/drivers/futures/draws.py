"""Drawn work: a counter-based random word looked up in a table of quantiles. There is no state, so neither order nor device matters.

Sums and products only, in a fixed order: the same draws on every processor, to the last bit.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel


@kernel
def word(seed: int, future: int, row: int) -> int:
    """53 random bits for one job in one future (SplitMix64 over the three numbers)."""
    z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(future)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) + np.uint64(row) * np.uint64(0xD1B54A32D192ED03) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))  # type: ignore[return-value]


@kernel
def drawn(quantile: Floats, seed: int, future: int, row: int) -> float:
    """One amount of work: a random place in the row's quantiles, which lie evenly; a straight line in between."""
    spans = quantile.shape[0] - 1
    place = float(word(seed, future, row)) * (1.0 / 9007199254740992.0) * spans
    below = int(place)
    if below >= spans:
        below = spans - 1
    part = place - float(below)
    step = quantile[below + 1, row] - quantile[below, row]
    step = step * part  # a statement of its own: fused with the sum it would be rounded once, not twice
    return float(quantile[below, row] + step)


@kernel
def _fill(quantile: Floats, seed: int, first: int, out: Floats) -> None:
    for future in range(out.shape[0]):
        for row in range(out.shape[1]):
            out[future, row] = drawn(quantile, seed, first + future, row)


def draw_work(quantile: Floats, seed: int, first: int, count: int) -> Floats:
    """The work of all jobs, (future, job), in `count` futures from number `first` on; `quantile` is by (place, job)."""
    work = np.empty((count, quantile.shape[1]))
    _fill(quantile, seed, first, work)
    return work
