"""Forecasts of how many jobs, and how many GPUs, are asked for in the ten minutes to come, as Lucid's simulator reads them."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

import numpy as np

from gantline.core.arrays import Floats
from gantline.systems.lucid.importer import FIRST

_STEP = 600
_AHEAD = 5


class SubmissionForecast:
    """One column of a table with a row per ten minutes of September."""

    def __init__(self, values: Floats) -> None:
        whole = max(len(values) - _AHEAD - 1, 0)
        means = np.zeros(whole)
        for ahead in range(1, _AHEAD + 1):
            means += values[ahead : ahead + whole]
        self.means: list[float] = (means / _AHEAD).tolist()
        """Per row, the mean of the five that follow; of all that are left, where fewer than six are."""
        self.means += [float(np.mean(values[first:])) for first in range(whole + 1, len(values))]

    def after(self, now: int) -> float | None:
        """What is expected after this second; None: no forecast is left."""
        step = (now - FIRST) // _STEP
        return self.means[step] if step < len(self.means) else None


class SharingSwitch:
    """Sharing is off while few jobs are expected. The original looks every 100 s, and the forecast changes every 600."""

    def __init__(self, forecast: SubmissionForecast, few: float) -> None:
        self._on = [mean > few for mean in forecast.means] + [True]
        changes = [step for step in range(1, len(self._on)) if self._on[step] != self._on[step - 1]]
        self._switches = [FIRST + _STEP * step for step in changes]

    def on_at(self, now: int) -> bool:
        return self._on[min((now - FIRST) // _STEP, len(self._on) - 1)]

    def next_switch(self, now: int) -> float:
        """When it is next switched on or off."""
        at = bisect_right(self._switches, now)
        return self._switches[at] if at < len(self._switches) else inf
