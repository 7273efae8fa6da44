"""Muri in its authors' simulator: an order by what is left or what was had, kept as a list from event to event, and groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gantline.performance.cycle_periods import Stages
from gantline.performance.stage_cycles import ALONE, DISTURBED
from gantline.systems.muri.imitation.clock import MuriGroup
from gantline.systems.muri.imitation.jobs import MuriJob
from gantline.systems.muri.policies.grouping import Grouping

UNMATCHED = (*DISTURBED[:3], 1.3 / ALONE)
"""The authors reckon with other figures where groups are not matched."""


class MuriSchedule:
    """Jobs in order, grouped, and the groups in the order of their first members as far as they fit."""

    def __init__(self, devices: int, stages: Sequence[Stages], *, known: bool, matching: bool, worst: bool, most: int) -> None:
        self._devices, self._known = devices, known
        disturbed = DISTURBED if matching else UNMATCHED
        self._grouping: Grouping[MuriJob] = Grouping(stages, matching=matching, worst=worst, most=most, disturbed=disturbed)
        self._listed: list[MuriJob] = []

    def arrive(self, job: MuriJob) -> None:
        self._listed.append(job)

    def end(self, job: MuriJob) -> None:
        self._listed.remove(job)

    def look_again(self, now: float) -> float:
        return math.inf

    def decide(self, now: float) -> list[MuriGroup]:
        value = {job: self._value(job) for job in self._listed}
        self._listed.sort(key=value.__getitem__)
        bunches = self._grouping.form(self._listed, self._devices)
        bunches.sort(key=lambda bunch: min([value[job] for job in bunch]))
        room, groups = self._devices, []
        for bunch in bunches:
            if bunch[0].gpus <= room:
                room -= bunch[0].gpus
                groups.append(MuriGroup(bunch, self._grouping.period(bunch)))
        self._listed.sort(key=lambda job: -job.gpus)
        return groups

    def _value(self, job: MuriJob) -> float:
        """GPU-seconds left, where these are known; until its first run a job has the length that the trace says. Else those it had."""
        if not self._known:
            return job.ran * job.gpus
        return (job.alone if job.ran > 0.0 else job.duration) * job.gpus
