"""Jobs that share devices stage by stage (Zhao et al., Muri, SIGCOMM 2022) as a performance model, for every policy that shares.

The stage times of a job are metrics, seconds of an iteration: `stage_load` (storage and CPU), `stage_gpu`, `stage_network`, and
`iteration_time` for the whole of it alone. Gangs on the same devices follow each other in the order of their offsets; their period is asked
for once per company. More than four take turns by fours. Where one of them has no stage times, all have their part of the devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.cycle_periods import MOST, Stages, cycle_period, usable
from gantline.models.model import Gangs, PerformanceModel

STAGES = ("stage_load", "stage_gpu", "stage_network")
ITERATION = "iteration_time"
ALONE = 1.015
"""How many times longer than measured an iteration took the authors' jobs alone."""
DISTURBED = (1.0, 1.33 / ALONE, 1.5 / ALONE, 1.37 / ALONE)
"""How many times longer than their stages say groups of one, two, three and four take, as the authors measured."""


@dataclass(frozen=True)
class StageCycles(PerformanceModel):
    """Gangs on the same devices all take one period for an iteration."""

    about_gangs: ClassVar[bool] = False
    disturbed: tuple[float, ...] = DISTURBED

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate = gangs.divided.copy()
        if gangs.shared.any():
            times = np.column_stack([gangs.metric(name) for name in STAGES]).tolist()
            step = gangs.metric(ITERATION)
            for company in _companies(gangs):
                stages = [Stages(*times[at]) for at in company]
                if len(company) > 1 and all(map(usable, stages)) and (step[company] > 0.0).all():
                    rate[company] = gangs.alone[company] * np.minimum(step[company] / self.period(stages), 1.0)
        return rate, np.full(len(gangs), np.inf)

    def period(self, stages: list[Stages]) -> float:
        """Seconds of an iteration of each of them, in this order."""
        fours = [tuple(stages[at : at + MOST]) for at in range(0, len(stages), MOST)]
        return sum(cycle_period(each) * self.disturbed[len(each) - 1] for each in fours)


def _companies(gangs: Gangs) -> Iterator[list[int]]:
    """Places of gangs that are on the same devices, in the order of their offsets."""
    company, found = gangs.company, dict[bytes, list[int]]()
    bounds = np.searchsorted(company.gang, np.arange(len(gangs) + 1)).tolist()
    for at in np.argsort(gangs.place, kind="stable").tolist():
        if gangs.shared[at]:
            found.setdefault(company.device[bounds[at] : bounds[at + 1]].tobytes(), []).append(at)
    yield from found.values()
