"""Axes of time in a unit that suits their length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.lab.report.figures.panels import Axis

_NATURAL = (
    (0.001, "1 ms"),
    (0.01, "10 ms"),
    (0.1, "0.1 s"),
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (36000, "10 h"),
    (4 * 86400, "4 d"),
    (40 * 86400, "40 d"),
    (400 * 86400, "400 d"),
)


@dataclass(frozen=True)
class TimeUnit:
    """A unit of time and its length in seconds."""

    name: str
    seconds: float


UNITS = (TimeUnit("s", 1.0), TimeUnit("min", 60.0), TimeUnit("h", 3600.0), TimeUnit("days", 86400.0))


def unit_for(seconds: float) -> TimeUnit:
    """The unit for an axis that reaches this far: seconds to 3 min, minutes to 3 h, hours to 5 days, then days."""
    if not math.isfinite(seconds):
        return UNITS[0]
    limits = (180.0, 3 * 3600.0, 5 * 86400.0)
    return next((unit for unit, limit in zip(UNITS, limits) if seconds <= limit), UNITS[-1])


def log_duration_axis(label: str, values: Floats) -> Axis:
    """A logarithmic axis of seconds with ticks as people say them: 1 min, 10 min, 1 h."""
    positive = values[np.isfinite(values) & (values > 0)]
    if positive.size == 0:
        return Axis(label, unit="s")
    low, high = float(positive.min()), float(positive.max())
    low, high = low / 1.15, high * 1.15
    inside = tuple(tick for tick in _NATURAL if low <= tick[0] <= high)
    if len(inside) < 2:
        return Axis(label, unit="s", log=True, low=low, high=high)
    return Axis(label, log=True, low=low, high=high, ticks=inside)
