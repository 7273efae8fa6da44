"""Intervals over seeds: how far a mean, or a relative change between two policies, could be off because other seeds might have been drawn.

Two intervals are made and the hull of both is told: Student's, with the jackknife's standard error, and from five samples on the
bootstrap-t (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 12), which follows a skewed sample further out on its
long side. On heavy-tailed workloads each alone falls short where the other does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.workload.special_functions import stdtr, stdtrit

FEWEST = 3
"""With fewer samples there is no interval: two have one degree of freedom, and nothing in them shows how heavy the tail is."""
FEWEST_OF_MANY = 10
"""The same for levels above 95 %, which rest on the tails."""
USUAL = 0.95
HIGHEST = 0.99
"""No level above this one has been measured."""
FEWEST_RESAMPLED = 5
RESAMPLES = 1999

Estimator = Callable[[Floats], tuple[Floats, Floats]]
"""From samples, shape (draws, columns, size), to an estimate and its standard error for each draw."""


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
    """The mean of the values, and how far it could be off."""
    return interval(values[None, :], mean_of, confidence)


def change_interval(old: Floats, new: Floats, confidence: float = USUAL) -> Interval:
    """How much the mean of `new` lies above that of `old`, as a fraction of it; the two are paired one by one."""
    found = interval(np.stack([old, new]), change_of, confidence)
    return replace(found, low=max(found.low, -1.0)) if (new >= 0).all() else found  # nothing falls by more than all of it


def interval(columns: Floats, estimator: Estimator, confidence: float) -> Interval:
    """The estimate of `columns`, shape (columns, size), with the hull of both intervals."""
    check_confidence(confidence)
    size = columns.shape[1]
    if size == 0:
        return Interval(math.nan, math.nan, math.nan, confidence, 0)
    value, error = (float(found[0]) for found in estimator(columns[None]))
    if size < fewest_samples(confidence) or not (math.isfinite(value) and math.isfinite(error)):
        return Interval(value, math.nan, math.nan, confidence, size, error)
    reach = float(stdtrit(size - 1, (1.0 + confidence) / 2.0)) * error
    low, high = value - reach, value + reach
    if size >= FEWEST_RESAMPLED and error > 0:
        below, above = _resampled_tails(columns, estimator, value, confidence)
        low, high = min(low, value - above * error), max(high, value - below * error)
    return Interval(value, low, high, confidence, size, error)


def mean_of(samples: Floats) -> tuple[Floats, Floats]:
    """The mean of the only column, and its standard error."""
    values = samples[:, 0, :]
    size = values.shape[1]
    error = values.std(axis=1, ddof=1) / math.sqrt(size) if size > 1 else np.full(len(values), math.nan)
    return values.mean(axis=1), error


def change_of(samples: Floats) -> tuple[Floats, Floats]:
    """The relative change of the second column's mean against the first one's, and the jackknife's standard error."""
    old, new = samples[:, 0, :], samples[:, 1, :]
    size = old.shape[1]
    value = _ratio(new.sum(axis=1), old.sum(axis=1))
    if size < 2:
        return value, np.full(len(value), math.nan)
    without = _ratio(new.sum(axis=1)[:, None] - new, old.sum(axis=1)[:, None] - old)
    with np.errstate(invalid="ignore"):
        spread = ((without - without.mean(axis=1)[:, None]) ** 2).sum(axis=1)
    return value, np.sqrt((size - 1) / size * spread)


def _ratio(new: Floats, old: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(new == old, 0.0, new / old - 1.0), dtype=np.float64)


def _resampled_tails(columns: Floats, estimator: Estimator, value: float, confidence: float) -> tuple[float, float]:
    """The quantiles of the studentised estimate in samples drawn with replacement; always the same draws, so that bounds repeat."""
    drawn, errors = estimator(columns[:, _picks(columns.shape[1])].transpose(1, 0, 2))
    some = np.isfinite(drawn) & (errors > 0)
    if not some.any():
        return 0.0, 0.0
    below, above = np.quantile((drawn[some] - value) / errors[some], [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(below), float(above)


@lru_cache(maxsize=16)
def _picks(size: int) -> Ints:
    """Samples drawn with replacement; those of one or two samples over and over are left out, because their error is chance alone."""
    picks = np.random.default_rng(size).integers(0, size, (RESAMPLES, size))
    ordered = np.sort(picks, axis=1)
    return picks[1 + (np.diff(ordered, axis=1) > 0).sum(axis=1) >= FEWEST]
