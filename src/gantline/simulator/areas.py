"""Areas under step functions of time: a value holds from its time to the time of the next one."""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Floats

Steps = tuple[Floats, Floats]
"""Times in order, and the values from then on."""


def integral(times: Floats, values: Floats, at: Floats) -> Floats:
    """The integral of a step function from its first row up to each of the moments ``at``.

    The function is zero before its first row and keeps its last value after its last row.
    """
    if times.size == 0:
        return np.zeros_like(at)
    areas = np.zeros(times.size)
    np.cumsum(values[:-1] * (times[1:] - times[:-1]), out=areas[1:])
    row = np.searchsorted(times, at, side="right") - 1
    inside = np.maximum(row, 0)
    return np.where(row < 0, 0.0, areas[inside] + values[inside] * (at - times[inside]))


def mean(steps: Steps, start: float, end: float) -> float:
    """The mean over the time from ``start`` to ``end``."""
    if not end > start:
        return math.nan
    area = integral(*steps, np.array([start, end]))
    return float((area[1] - area[0]) / (end - start))


def mean_present(arrivals: Floats, departures: Floats, born: Floats, gone: Floats) -> Floats:
    """The mean number of those that arrive and depart, over each stretch from ``born`` to ``gone``; one where it has no length."""
    times = np.concatenate([arrivals, departures])
    order = np.argsort(times, kind="stable")
    times, steps = times[order], np.concatenate([np.ones(arrivals.size), -np.ones(departures.size)])[order]
    level = np.cumsum(steps)
    area = integral(times, level, gone) - integral(times, level, born)
    length = gone - born
    return np.where(length > 0, area / np.where(length > 0, length, 1.0), 1.0)
