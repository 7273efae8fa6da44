"""Median and percentiles, equal to NumPy's to the last bit; its own functions import masked arrays, which costs a tenth of a short run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Floats


def percentiles(values: Floats, percents: Sequence[float]) -> tuple[float, list[float]]:
    """The median, and the values below which so many percent lie; NaN if there is one among the values, of which there is at least one."""
    last, middle = len(values) - 1, len(values) // 2
    places = [last * (percent / 100.0) for percent in percents]
    needed = {max(middle - 1, 0), middle, last}.union(*({int(place), min(int(place) + 1, last)} for place in places))
    ordered = np.partition(values, sorted(needed))  # where they are needed
    if math.isnan(ordered[last]):
        return math.nan, [math.nan] * len(percents)
    half = float(ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0)
    return half, [_between(float(ordered[int(at)]), float(ordered[min(int(at) + 1, last)]), at % 1.0) for at in places]


def _between(low: float, high: float, part: float) -> float:
    """From the nearer one, as NumPy does."""
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)
