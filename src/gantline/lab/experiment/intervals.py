"""Intervals over seeds: how far a mean, or a relative change between two policies, could be off because other seeds might have been drawn.

Two intervals are made and the hull of both is reported: Student's, with the jackknife's standard error, and from five samples on the
bootstrap-t (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 12), which follows a skewed sample further out on its
long side. On heavy-tailed workloads each alone falls short where the other does not: ``docs/coverage.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError

FEWEST = 3
"""With fewer samples there is no interval: two have one degree of freedom, and nothing in them shows how heavy the tail is."""
FEWEST_OF_MANY = 10
"""The same for levels above 95 %, which rest on the tails."""
USUAL = 0.95
HIGHEST = 0.99
"""No level above this one has been measured."""
FEWEST_RESAMPLED = 5
RESAMPLES = 1999


@dataclass(frozen=True)
class Interval:
    """An estimate with bounds; without them (`low` is NaN) there were too few samples to say."""

    value: float
    low: float
    high: float
    confidence: float
    samples: int
    error: float = math.nan
    """The standard error of the value; NaN where it is not known."""

    @property
    def known(self) -> bool:
        """Whether there are bounds."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    @property
    def p(self) -> float:
        """How likely a value this far from zero would be if nothing but chance moved it: Student's two-sided test; NaN where not known."""
        if self.samples < FEWEST or not math.isfinite(self.error):
            return math.nan
        if self.error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(2.0 * stdtr(self.samples - 1, -abs(self.value) / self.error))


def check_confidence(confidence: float) -> None:
    """Refuse levels that no interval here has been measured at."""
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence:g} is not between 0 and 1", where="confidence", fix="give 0.95")
    if confidence > HIGHEST:
        raise UsageError(f"intervals of {100 * confidence:g} % have not been measured", where="confidence", fix="give 0.99 or less")


def fewest_samples(confidence: float) -> int:
    """How many samples an interval of this level needs at least."""
    return FEWEST if confidence <= USUAL else FEWEST_OF_MANY


def mean_interval(values: Floats, confidence: float = USUAL) -> Interval:
    """The mean of the values, and how far it could be off: a ratio to what is one in every sample."""
    return _ratio_interval(np.ones_like(values), values, confidence)


def change_interval(old: Floats, new: Floats, confidence: float = USUAL) -> Interval:
    """How much the mean of `new` lies above that of `old`, as a fraction of it; the two are paired one by one."""
    found = _ratio_interval(old, new, confidence)
    found = replace(found, value=found.value - 1.0, low=found.low - 1.0, high=found.high - 1.0)
    return replace(found, low=max(found.low, -1.0)) if (new >= 0).all() else found  # nothing falls by more than all of it


def ratio_error(old: Floats, new: Floats) -> float:
    """The jackknife's standard error of the ratio of two sums; NaN of fewer than two samples."""
    size = len(old)
    if size < 2:
        return math.nan
    without = _ratio(new.sum() - new, old.sum() - old)
    with np.errstate(invalid="ignore"):
        return float(np.sqrt((size - 1) / size * ((without - without.mean()) ** 2).sum()))


def _ratio_interval(old: Floats, new: Floats, confidence: float) -> Interval:
    """The ratio of the sums of paired samples with the hull of both intervals."""
    check_confidence(confidence)
    size = len(old)
    if size == 0:
        return Interval(math.nan, math.nan, math.nan, confidence, 0)
    value, error = float(_ratio(new.sum(), old.sum())), ratio_error(old, new)
    if size < fewest_samples(confidence) or not (math.isfinite(value) and math.isfinite(error)):
        return Interval(value, math.nan, math.nan, confidence, size, error)
    reach = float(stdtrit(size - 1, (1.0 + confidence) / 2.0)) * error
    low, high = value - reach, value + reach
    if size >= FEWEST_RESAMPLED and error > 0:
        below, above = _resampled_tails(old, new, value, confidence)
        low, high = min(low, value - above * error), max(high, value - below * error)
    return Interval(value, low, high, confidence, size, error)


def _ratio(new: Floats | float, old: Floats | float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(new) == old, 1.0, np.asarray(new, dtype=np.float64) / old)


def _resampled_tails(old: Floats, new: Floats, value: float, confidence: float) -> tuple[float, float]:
    """The quantiles of the studentised ratio in samples drawn with replacement; always the same draws, so that bounds repeat.

    A draw is how often it holds each sample, so that its sums are products of matrices; its error is that of a ratio estimator.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below, aa, ab, bb = (_draws(len(old)) @ np.stack([new, old, new * new, new * old, old * old], axis=1)).T
        ratio = above / below
        spread = np.maximum(aa - 2.0 * ratio * ab + ratio**2 * bb, 0.0)
        errors = np.sqrt(spread * len(old) / (len(old) - 1)) / np.abs(below)
        some = np.isfinite(ratio) & (errors > 1e-9 * np.abs(ratio))
    if not some.any():
        return 0.0, 0.0
    low, high = np.quantile((ratio[some] - value) / errors[some], [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(low), float(high)


@lru_cache(maxsize=16)
def _draws(size: int) -> Floats:
    """How often each sample is in each draw; draws of one or two samples over and over are left out: their error is chance alone."""
    picks = np.random.default_rng(size).integers(0, size, (RESAMPLES, size))
    counts = np.zeros((RESAMPLES, size))
    np.add.at(counts, (np.arange(RESAMPLES)[:, None], picks), 1.0)
    return counts[(counts > 0).sum(axis=1) >= FEWEST]


# Many comparisons in one table: which of them hold together, and how many seeds the others would need.

POWER = 0.8
"""The power: how often the seeds that are reported as needed would detect a change of the size that was seen."""
MOST_SEEDS = 1000


def holm(chances: Sequence[float]) -> list[float]:
    """p-values for a whole table (Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979); those not known stay so.

    Below 0.05: with at most 5 % probability any of the rows that are called different is not.
    """
    known = [index for index, chance in enumerate(chances) if not math.isnan(chance)]
    found, highest = [math.nan] * len(chances), 0.0
    for rank, index in enumerate(sorted(known, key=lambda index: chances[index])):
        highest = max(highest, min(1.0, (len(known) - rank) * chances[index]))
        found[index] = highest
    return found


def seeds_needed(change: float, spread: float, confidence: float, comparisons: int) -> int | None:
    """How many seeds would detect a change of this size, with a power of 80 %, in a table of so many comparisons; None: over a thousand.

    `spread`: the standard deviation of the change from seed to seed.
    """
    if not change or not math.isfinite(spread):
        return None
    counts = np.arange(fewest_samples(confidence), MOST_SEEDS + 1)
    level = (1.0 - confidence) / comparisons
    reach = stdtrit(counts - 1, 1.0 - level / 2.0) + stdtrit(counts - 1, POWER)
    enough = np.flatnonzero(reach * spread / np.sqrt(counts) <= abs(change))
    return int(counts[enough[0]]) if enough.size else None
