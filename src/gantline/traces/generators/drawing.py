"""What generators draw from: named random streams, gaps between arrivals, and the trace that drawn columns become.

A column drawn from its own stream does not notice when another column is added, removed or reordered, and the first
hundred values of a stream are the same whether one asks for a hundred or for a million.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import gamma, gammaincinv

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.rng import stream
from gantline.traces.trace import Trace


class Streams:
    """Independent generators by name, all derived from one seed."""

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise UsageError(f"a seed must be a whole number of at least 0, not {seed!r}", where="seed")
        self.seed = seed

    def generator(self, name: str) -> np.random.Generator:
        """The generator of this name, always at its beginning."""
        return stream(self.seed, 0, f"workload/{name}")

    def uniforms(self, name: str, count: int) -> Floats:
        """``count`` uniform numbers in [0, 1); everything else is made from these by inverse distribution functions."""
        return self.generator(name).random(count)


# When jobs arrive: gaps of a given variation, stretched and squeezed by the hour of the day and the day of the week.
#
# Gaps are drawn in a time of their own in which the rate is constant; the clock then runs through the weekly profile,
# so that a busy hour holds more of that time than a quiet one (time rescaling of a renewal process).

_HOUR = 3600.0
_WEEK = 168 * _HOUR


@dataclass(frozen=True, slots=True)
class ArrivalProfile:
    """How busy each hour of a week is, beginning at some weekday and hour; the mean is one."""

    weights: tuple[float, ...]

    @classmethod
    def of(cls, hours: tuple[float, ...], weekdays: tuple[float, ...], start_hour: int, start_day: int) -> ArrivalProfile:
        """The week as the product of both curves; the clock begins at the given hour and weekday."""
        week = np.outer(weekdays, hours).ravel()
        week = np.roll(week / week.mean(), -(24 * start_day + start_hour))
        return cls(tuple(float(w) for w in week))

    def elapsed(self, clock: float) -> float:
        """How much rate has passed when the clock shows this time."""
        weeks, rest = divmod(clock, _WEEK)
        return float(weeks * _WEEK + np.interp(rest, self._hours(), self._ladder()))

    def clock(self, elapsed: Floats) -> Floats:
        """What the clock shows when this much rate has passed; the inverse of :meth:`elapsed`."""
        weeks = np.floor(elapsed / _WEEK)
        clock: Floats = weeks * _WEEK + np.interp(elapsed - weeks * _WEEK, self._ladder(), self._hours())
        return clock

    def _ladder(self) -> Floats:
        ladder = np.zeros(169)
        ladder[1:] = np.cumsum(self.weights) * _HOUR
        ladder[-1] = _WEEK
        return ladder

    @staticmethod
    def _hours() -> Floats:
        return np.linspace(0.0, _WEEK, 169)


def unit_gaps(uniforms: Floats, pattern: str, variation: float) -> Floats:
    """Gaps with mean one and this coefficient of variation (a Poisson process always has one)."""
    if pattern == "gamma":
        shape = variation**-2
        gaps: Floats = gammaincinv(shape, uniforms) / shape
        return gaps
    if pattern == "weibull":
        shape = _weibull_shape(variation)
        return (-np.log1p(-uniforms)) ** (1.0 / shape) / float(gamma(1.0 + 1.0 / shape))
    return -np.log1p(-uniforms)


def _weibull_shape(variation: float) -> float:
    from scipy.optimize import brentq  # slow to import: few traces have such gaps

    def excess(shape: float) -> float:
        return float(gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1 - variation**2)

    return float(brentq(excess, 0.12, 200.0))


# The one place where drawn columns become a Trace.


def as_trace(columns: Mapping[str, Any], source: str, notes: tuple[str, ...] = ()) -> Trace:
    """A trace of these columns (series, arrays or lists) in order of arrival, with a name for every job that does not name itself."""
    if not len(columns["arrival"]):
        raise UsageError("no job arrives in this time", where=source, fix="give a longer length, or a higher rate")
    frame = pl.DataFrame(dict(columns)).sort("arrival", maintain_order=True)
    if "job" not in frame.columns:
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(6)
        frame = frame.select((pl.lit("j") + numbers).alias("job"), pl.all())
    return Trace(frame, source=source, notes=notes)
