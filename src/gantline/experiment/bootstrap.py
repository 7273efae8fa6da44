"""Bootstrap intervals: how far a number could be off because other seeds, or other jobs, might have been drawn.

The interval is the expanded percentile interval of Hesterberg (What Teachers Should Know About the Bootstrap, The American
Statistician 2015, section 4.1.3): percentiles of the resampled statistic, taken further out for small samples exactly as
Student's t goes further out than the normal distribution. Of normal samples, its 95 % intervals cover 95 % from eight
samples on and 92 % with five, where the plain percentile interval covers 85 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.workload.special_functions import ndtr, stdtrit

Statistic = Callable[[Floats], Floats]
"""From samples, shape (draws, columns, size), to one number per draw; rows of a sample stay together, which makes pairs."""

FEWEST = 5
"""With fewer samples no resampling reaches the percentiles that a 95 % interval needs."""
RESAMPLES = 4000
_CELLS = 4_000_000  # numbers held at once


@dataclass(frozen=True)
class Interval:
    """An estimate with bounds; without them (`low` is NaN) there were too few samples to say."""

    value: float
    low: float
    high: float
    confidence: float
    samples: int

    @property
    def known(self) -> bool:
        """Whether there are bounds."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


def mean_of(samples: Floats) -> Floats:
    """The mean of the only column."""
    return np.asarray(samples[:, 0, :].mean(axis=1), dtype=np.float64)


def relative_change(samples: Floats) -> Floats:
    """How much the mean of the second column lies above that of the first, as a fraction of the first."""
    first, second = samples[:, 0, :].mean(axis=1), samples[:, 1, :].mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(first == second, 0.0, second / first - 1.0), dtype=np.float64)


def bootstrap(
    columns: Floats,
    statistic: Statistic = mean_of,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The statistic of `columns`, shape (columns, size), with its interval; the same seed gives the same bounds."""
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence} is not between 0 and 1", where="bootstrap")
    size = columns.shape[1]
    value = float(statistic(columns[None])[0]) if size else float("nan")
    if size < FEWEST:
        return Interval(value, float("nan"), float("nan"), confidence, size)
    draws = _resampled(columns, statistic, resamples, seed)
    tail = expanded_tail(confidence, size)
    low, high = np.quantile(draws, [tail, 1.0 - tail])
    return Interval(value, float(low), float(high), confidence, size)


def expanded_tail(confidence: float, size: int) -> float:
    """The probability to leave out on each side: that of Student's t, with the bootstrap's narrower spread undone."""
    reach = stdtrit(size - 1, (1.0 + confidence) / 2.0) * np.sqrt(size / (size - 1))
    return float(ndtr(-reach))


def _resampled(columns: Floats, statistic: Statistic, resamples: int, seed: int) -> Floats:
    """The statistic of samples drawn with replacement, a block of draws at a time."""
    generator = np.random.default_rng(seed)
    size = columns.shape[1]
    block = max(1, _CELLS // (size * columns.shape[0]))
    found = []
    for start in range(0, resamples, block):
        picks = generator.integers(0, size, (min(block, resamples - start), size))
        found.append(statistic(columns[:, picks].transpose(1, 0, 2)))
    return np.concatenate(found)
