"""How much work a job may really have: drawn around its estimate, given what it has done already.

Three sources, best first: the range that came with the estimate (two standard deviations either way), the ratios of true work to estimate
that ended jobs have shown, and a log-normal of a stated width. A job that has outlived them all is taken to need as long again on
average, which is the mean residual life of a heavy tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.snapshot import Snapshot


# --- a counter-based random word in a table of quantiles, by sums and products in a fixed order: the same on every proces
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


# --- the distribution ---------------------------------------------------------------------------------------------------
FEWEST = 20  # ended jobs before their ratios are taken in place of a log-normal
SPANS = 128  # between the quantiles of a table
_SURE = 1.0 - 1e-9


@dataclass(frozen=True)
class Uncertainty:
    """`sigma` is the width of the log-normal; zero: estimates are the truth. `ratios` are true work over estimate of jobs that ended."""

    sigma: float = 0.5
    ratios: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (0.0 <= self.sigma < math.inf):
            raise UsageError(f"the width {self.sigma} is not a number of zero or more", where="uncertainty", fix="write 0.5")

    @property
    def source(self) -> str:
        """A description of what the draws are based on."""
        if len(self.ratios) >= FEWEST:
            return "what is known of true work over estimates"
        return f"a log-normal with sigma {self.sigma:g}" if self.sigma > 0 else "estimates taken as true"

    def quantiles(self, snapshot: Snapshot) -> Floats:
        """Total work by (place, job): places lie evenly from the least to the most that is likely."""
        jobs = snapshot.jobs
        estimate = np.maximum(jobs.estimate, 1e-6)
        done = np.minimum(jobs.done, estimate * 1e9)
        low, high = jobs.estimate_low, jobs.estimate_high
        given = (low > 0) & (high > low)  # equal: no range is known
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.where(given, np.log(high / low) / 4.0, self.sigma)
            middle = np.where(given, 0.5 * (np.log(low) + np.log(high)), np.log(estimate))
        place = np.clip(np.arange(SPANS + 1) / SPANS, 0.25 / SPANS, 1.0 - 0.25 / SPANS)[:, None]
        found = _log_normal(middle, width, done, place)
        found[:, (width <= 0.0) & ~given] = estimate[(width <= 0.0) & ~given]
        if len(self.ratios) >= FEWEST:
            shown = np.sort(np.asarray(self.ratios, dtype=np.float64))
            free = np.flatnonzero(~given)
            found[:, free] = _from_ratios(shown, estimate[free], done[free], place)
        late = np.flatnonzero(~(found[0] > done))
        found[:, late] = done[late] - np.log1p(-place) * np.maximum(done[late], 1e-6)
        return found

    def ratio(self, random: np.random.Generator) -> float:
        """True work over estimate of one job that has done nothing yet."""
        if len(self.ratios) >= FEWEST:
            return self.ratios[int(random.integers(len(self.ratios)))]
        return math.exp(self.sigma * float(random.standard_normal()))

    def draw(self, snapshot: Snapshot, seed: int, first: int, count: int) -> Floats:
        """Total work by (future, job), in `count` futures from number `first` on."""
        return draw_work(self.quantiles(snapshot), seed, first, count)


def _log_normal(middle: Floats, width: Floats, done: Floats, place: Floats) -> Floats:
    """Quantiles above `done`, by inverting the distribution's upper part; NaN where nothing is left of it."""
    sure = width <= 0.0
    spread = np.where(sure, 1.0, width)
    with np.errstate(divide="ignore"):
        below = np.where(done > 0, ndtr((np.log(np.maximum(done, 1e-300)) - middle) / spread), 0.0)
    found = np.exp(middle + spread * ndtri(np.minimum(below + place * (1.0 - below), _SURE)))
    found = np.where(below < _SURE, found, np.nan)
    return np.where(sure, np.exp(middle), found)


def _from_ratios(shown: Floats, estimate: Floats, done: Floats, place: Floats) -> Floats:
    """Ratios among those that are still possible; NaN where none is."""
    first = np.searchsorted(shown, done / estimate, side="right")
    some = first < len(shown)
    found = np.full((len(place), len(estimate)), np.nan)
    left = len(shown) - first[some]
    found[:, some] = shown[first[some] + np.minimum((place * left).astype(np.int64), left - 1)] * estimate[some]
    return found
