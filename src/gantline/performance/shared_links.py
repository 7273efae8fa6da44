"""Links that gangs share by max-min fairness, as a performance model: `--performance shared-links`, with every policy.

What a job sends, and when, are metrics of its trace (`gantline.core.traffic`); which links it crosses follows from where it is placed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.performance.link_flows import Flow, iteration_times
from gantline.performance.link_gangs import slowdowns
from gantline.performance.model import Gangs, PerformanceModel


@lru_cache(maxsize=1 << 14)
def fluid_times(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> Floats:
    """Seconds of an iteration of each; asked about once."""
    return iteration_times(flows, capacity)


@dataclass(frozen=True)
class SharedLinks(PerformanceModel):
    """Gangs are as much slower as their iterations are longer, with the links that they share divided fairly at every instant."""

    about_everyone: ClassVar[bool] = True

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        return rates_by(gangs, slowdowns(gangs.everyone, fluid_times))


def rates_by(gangs: Gangs, slow: Floats) -> tuple[Floats, Floats]:
    """The speeds of these gangs, where each of all gangs that run is so much slower."""
    by_row = dict(zip(gangs.everyone.rows.tolist(), slow.tolist()))
    return gangs.divided / np.array([by_row.get(row, 1.0) for row in gangs.rows.tolist()]), np.full(len(gangs), np.inf)
