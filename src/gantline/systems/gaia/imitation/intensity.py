"""The carbon intensity of GAIA's thirty days: one value per hour, the same for each of its ticks, nothing behind the end."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError
from gantline.core.signal import Signal
from gantline.systems.gaia.imitation.jobs import HOUR, SPAN

_HOURS = SPAN // HOUR


class Intensity:
    """Grams (or kilograms) that a watt (or a kilowatt) emits in a tick, summed over ticks."""

    def __init__(self, signal: Signal, first_hour: int) -> None:
        if signal.step != 3600.0:
            raise RefusedError(
                f"the series has a row every {signal.step:g} s", where="--carbon", fix="GAIA's simulator reads one row per hour"
            )
        values = np.asarray(signal.values[first_hour : first_hour + _HOURS])
        if len(values) < _HOURS:
            raise RefusedError(
                f"the series has {len(signal.values)} hours, and a run from hour {first_hour} on reads {_HOURS}",
                where="--carbon",
                fix=f"give --set start=H with H from 0 to {max(0, len(signal.values) - _HOURS)}, or a longer series",
            )
        self.hourly: Floats = values / 1000.0
        self._sums = np.concatenate(([0.0], np.cumsum(self.hourly)))

    def at(self, tick: int) -> float:
        return float(self.hourly[tick // HOUR])

    def over(self, begin: int, ticks: int) -> float:
        """What a watt emits from this tick on."""
        return self._until(min(begin + ticks, SPAN)) - self._until(min(begin, SPAN))

    def ticks(self, begin: int, end: int) -> Floats:
        """The intensity of every tick from begin to end, or to the end of the thirty days."""
        end = min(end, SPAN)
        hours = np.repeat(self.hourly[begin // HOUR : -(-end // HOUR)], HOUR)
        skipped = begin - begin // HOUR * HOUR
        return hours[skipped : skipped + end - begin]

    def _until(self, tick: int) -> float:
        hour, rest = divmod(tick, HOUR)
        return float(self._sums[hour]) + (float(self.hourly[hour]) * rest / HOUR if rest else 0.0)
