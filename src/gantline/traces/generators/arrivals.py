"""When jobs arrive: gaps of a given variation, stretched and squeezed by the hour of the day and the day of the week.

Gaps are drawn in a time of their own in which the rate is constant; the clock then runs through the weekly profile, so
that a busy hour holds more of that time than a quiet one (time rescaling of a renewal process).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gamma, gammaincinv

from gantline.core.arrays import Floats

PATTERNS = ("poisson", "gamma", "weibull")
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
    from scipy.optimize import brentq  # takes longer to import than most traces to make

    def excess(shape: float) -> float:
        return float(gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1 - variation**2)

    return float(brentq(excess, 0.12, 200.0))
