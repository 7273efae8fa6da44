"""The schedulers that Muri is compared with and that keep an order: SRTF, SRSF and Tiresias, one job on a GPU at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from gantline.systems.muri.imitation.clock import MuriGroup
from gantline.systems.muri.imitation.jobs import MuriJob

LIMITS = (3250.0, 7200.0)
"""GPU-seconds at which Tiresias moves a job to the next queue."""


def admit(order: Iterable[MuriJob], devices: int) -> list[MuriGroup]:
    """Jobs by themselves, in order, those that do not fit left out."""
    groups = []
    for job in order:
        if job.gpus <= devices:
            devices -= job.gpus
            groups.append(MuriGroup((job,), job.step))
    return groups


class ShortestSchedule:
    """By a key, least first; jobs of equal keys stay in the order in which the event before left them."""

    def __init__(self, devices: int, key: Callable[[MuriJob], float]) -> None:
        self._devices, self._key = devices, key
        self._listed: list[MuriJob] = []

    def arrive(self, job: MuriJob) -> None:
        self._listed.append(job)

    def end(self, job: MuriJob) -> None:
        self._listed.remove(job)

    def decide(self, now: float) -> list[MuriGroup]:
        self._listed.sort(key=self._key)
        return admit(self._listed, self._devices)

    def look_again(self, now: float) -> float:
        return math.inf


class TiresiasSchedule:
    """Three queues by attained GPU-time; in each the jobs that run stand before those that wait."""

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._queues: list[list[MuriJob]] = [[] for _ in range(len(LIMITS) + 1)]
        self._level: dict[MuriJob, int] = {}  # in the order of arrival
        self._running: list[MuriJob] = []

    def arrive(self, job: MuriJob) -> None:
        self._queues[0].append(job)
        self._level[job] = 0

    def end(self, job: MuriJob) -> None:
        self._queues[self._level.pop(job)].remove(job)

    def decide(self, now: float) -> list[MuriGroup]:
        for job, level in self._level.items():
            if job.running and level < len(LIMITS) and job.ran * job.gpus >= LIMITS[level]:
                self._queues[level].remove(job)
                self._queues[level + 1].append(job)
                self._level[job] = level + 1
        room = self._devices
        self._running = []
        for level, queue in enumerate(self._queues):
            runs, waits = list[MuriJob](), list[MuriJob]()
            for job in queue:
                if job.gpus <= room:
                    room -= job.gpus
                    runs.append(job)
                else:
                    waits.append(job)
            self._queues[level] = runs + waits
            self._running += runs
        return [MuriGroup((job,), job.step) for job in self._running]

    def look_again(self, now: float) -> float:
        """The next demotion; one that is overdue waits for whatever comes next, since a job moves by one queue an event.

        So does one that is nearer than the clock can tell: an event now would find the job as it is.
        """
        level = self._level
        running = [job for job in self._running if level[job] < len(LIMITS)]
        times = [now + (math.ceil(LIMITS[level[job]] / job.gpus) - job.ran) for job in running]
        return min([time for time in times if time > now], default=math.inf)
