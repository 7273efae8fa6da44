"""Muri in its authors' simulator: an order by what is left or what was had, kept as a list from event to event, and groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from gantline.models.sharing.stage_cycles import ALONE, DISTURBED, Stages
from gantline.systems.muri.imitation.clock import MuriGroup
from gantline.systems.muri.imitation.jobs import MuriJob
from gantline.systems.muri.policies.grouping import Grouping

UNMATCHED = (*DISTURBED[:3], 1.3 / ALONE)
"""The authors reckon with other figures where groups are not matched."""


class MuriSchedule:
    """Jobs in order, grouped, and the groups in the order of their first members as far as they fit."""

    def __init__(self, devices: int, stages: Sequence[Stages], *, known: bool, matching: bool, worst: bool, most: int) -> None:
        self._devices, self._value = devices, _left if known else _had
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
        value = dict(zip(self._listed, map(self._value, self._listed)))
        self._listed.sort(key=value.__getitem__)
        bunches = self._grouping.form(self._listed, self._devices)
        bunches.sort(key=lambda bunch: min(map(value.__getitem__, bunch)))
        room, groups = self._devices, []
        for bunch in bunches:
            if bunch[0].gpus <= room:
                room -= bunch[0].gpus
                groups.append(MuriGroup(bunch, self._grouping.period(bunch)))
        self._listed.sort(key=attrgetter("gpus"), reverse=True)
        return groups


def _left(job: MuriJob) -> float:
    """The GPU-seconds that are left; until its first run a job has the length that the trace says."""
    return (job.alone if job.ran > 0.0 else job.duration) * job.gpus


def _had(job: MuriJob) -> float:
    """The GPU-seconds that it had, where those left are not known."""
    return job.ran * job.gpus
