"""Links that gangs share by max-min fairness, as a performance model: `--performance shared-links`, with every policy.

What a job sends, and when, are metrics of its trace (`gantline.core.traffic`); which links it crosses follows from where it is placed.
Jobs that a plan shifts may slip from their offsets, each at a pace of its own (`drift`); the metric `phase_error` says by which part of an
iteration. Another offset, a whole iteration more for instance, aligns a job anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.models.link_flows import Flow, iteration_times
from gantline.models.link_gangs import own_phase, slowdowns
from gantline.models.model import Gangs, Observed, PerformanceModel

PHASE_ERROR = "phase_error"
_STEP = 0.01  # of an iteration: how far the fastest may slip before speeds are computed anew
_HOUR = 3600.0


@lru_cache(maxsize=1 << 14)
def fluid_times(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> Floats:
    """Seconds of an iteration of each; asked about once."""
    return iteration_times(flows, capacity)


@dataclass(frozen=True)
class SharedLinks(PerformanceModel):
    """Gangs are as much slower as their iterations are longer, with the links that they share divided fairly at every instant."""

    about_everyone: ClassVar[bool] = True
    drift: float = 0.0
    """Iterations per hour by which a shifted job slips from its offset at most, ahead or behind."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.drift < np.inf:
            raise UsageError(f"a drift of {self.drift:g}", where="shared-links", fix="iterations per hour, zero or more")

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        everyone = gangs.everyone
        if not self.drift:
            return rates_by(gangs, slowdowns(everyone, fluid_times))
        slipped = np.round(self._slipped(everyone) / _STEP) * _STEP
        rate, until = rates_by(gangs, slowdowns(everyone, fluid_times, slipped))
        return rate, np.full_like(until, gangs.now + _STEP / self.drift * _HOUR) if (everyone.group >= 0).any() else until

    def observe(self, gangs: Gangs) -> Observed | None:
        """How far each shifted job is off, and since when it has had its offset."""
        if not self.drift:
            return None
        aligned = self._aligned(gangs)
        error = np.where(gangs.group >= 0, np.abs(self._slipped(gangs)), np.nan)
        return Observed({PHASE_ERROR: error}, {str(row): list(since) for row, since in aligned.items()})

    def _aligned(self, gangs: Gangs) -> dict[int, tuple[float, float]]:
        """Offset of each shifted job, and since when it has that."""
        known, found = gangs.learned or {}, {}
        for row, offset, group in zip(gangs.rows.tolist(), gangs.offset.tolist(), gangs.group.tolist()):
            if group >= 0:
                before = known.get(str(row))
                found[row] = (offset, before[1] if before is not None and before[0] == offset else gangs.now)
        return found

    def _slipped(self, gangs: Gangs) -> Floats:
        """The part of an iteration by which each has slipped since then."""
        aligned = self._aligned(gangs)
        hours = np.array([(gangs.now - aligned[row][1]) / _HOUR if row in aligned else 0.0 for row in gangs.rows.tolist()])
        pace = np.array([2.0 * own_phase(row) - 1.0 for row in gangs.rows.tolist()])
        return np.asarray(hours * self.drift * pace)


def rates_by(gangs: Gangs, slow: Floats) -> tuple[Floats, Floats]:
    """The speeds of these gangs, where each of all gangs that run is so much slower."""
    by_row = dict(zip(gangs.everyone.rows.tolist(), slow.tolist()))
    return gangs.divided / np.array([by_row.get(row, 1.0) for row in gangs.rows.tolist()]), np.full(len(gangs), np.inf)
