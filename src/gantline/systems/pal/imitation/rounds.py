"""PAL's clock: rounds of Blox, in which a job's steps take as long as its slowest GPU and its spread over nodes make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from gantline.core.device_speeds import DeviceSpeeds
from gantline.policies.placement.picking import Devices
from gantline.systems.pal.imitation.placing import PalEntry, Placing

_REFILL_PER_HOUR = 2.0
_PROMOTED, _PATIENCE = 1, 3_600_000.0
"""A job that has waited a thousand hours goes before all others."""


class PalJob(NamedTuple):
    """A job as the trace gives it."""

    submit: float
    gpus: int
    steps: float
    step_time: float
    kind: str


@dataclass
class Life:
    """What has become of a job."""

    executed: float = 0.0
    service: float = 0.0
    waited: float = 0.0
    first_start: float = math.nan
    end: float = math.nan
    spells: list[tuple[float, float, Devices]] = field(default_factory=list)
    """(from, to, devices) in which it held the same devices."""


@dataclass
class PalRounds:
    """The run. The trace is repeated behind its end, at two jobs an hour, until the jobs of the trace itself are done."""

    jobs: Sequence[PalJob]
    speeds: DeviceSpeeds
    placing: Placing
    penalty: float
    length: float
    order_by: str
    on_round: Callable[[float, int, int], None] | None = None  # time, jobs of the trace that have arrived, and that are inside

    def run(self) -> list[Life]:
        """What became of each job of the trace."""
        self._list, self._lives = list(self.jobs), [Life() for _ in self.jobs]
        self._refill, self._admitted = Random(1), 0
        self._active: list[int] = []
        self._held: dict[int, Devices] = {}
        self._pace: dict[int, float] = {}
        self._since: dict[int, float] = {}
        open_jobs, now, settled = set(range(len(self.jobs))), 0.0, False
        while True:
            ended = self._advance(now)
            open_jobs -= ended
            if not open_jobs:
                return self._lives[: len(self.jobs)]
            came = self._admit(now)
            if ended or came or not settled or self.order_by != "fifo":
                settled = self._place(now)
            self._count_waiting()
            if self.on_round is not None:
                arrived = min(self._admitted, len(self.jobs))
                self.on_round(now, arrived, arrived - len(self.jobs) + len(open_jobs))
            now += self.length

    @property
    def fillers(self) -> int:
        """Jobs that were added behind the trace and came before the end."""
        return self._admitted - len(self.jobs)

    def _advance(self, now: float) -> set[int]:
        """A round's steps for whatever runs; what has done all of them ends now."""
        ended = set()
        for job, pace in self._pace.items():
            life = self._lives[job]
            life.executed += self.length / pace
            life.service += self.length
            if life.executed >= self._list[job].steps:
                life.end = now
                ended.add(job)
        for job in ended:
            self._release(job, now)
            self._active.remove(job)
        return ended

    def _admit(self, now: float) -> bool:
        before = self._admitted
        while self._submit(self._admitted) <= now:
            self._active.append(self._admitted)
            self._admitted += 1
        return self._admitted > before

    def _submit(self, job: int) -> float:
        if job == len(self._list):
            again = self._list[job % len(self.jobs)]
            gap = math.ceil(self._refill.expovariate(_REFILL_PER_HOUR) * 3600.0)
            self._list.append(again._replace(submit=self._list[-1].submit + gap))
            self._lives.append(Life())
        return self._list[job].submit

    def _place(self, now: float) -> bool:
        """One round of placement; whether it left everything as it was."""
        order = [PalEntry(job, self._list[job].gpus, self._list[job].kind) for job in sorted(self._active, key=self._key)]
        suspend, launch = self.placing.place(order, self._held)
        before = dict(self._held)
        given = dict(launch)
        for job in suspend:
            if given.get(job) != before[job]:
                self._release(job, now)
        for job, devices in launch:
            if self._held.get(job) == devices:
                continue
            if job in self._held:
                self._release(job, now)
            self._held[job], self._since[job] = devices, now
            self._pace[job] = self._step_time(job, devices)
            if math.isnan(self._lives[job].first_start):
                self._lives[job].first_start = now
        return self._held == before

    def _key(self, job: int) -> tuple[float, float]:
        life, asked = self._lives[job], self._list[job]
        first = _PROMOTED if life.waited >= _PATIENCE else 999
        if self.order_by == "fifo":
            return first, asked.submit
        return first, life.service if self.order_by == "las" else asked.step_time * asked.steps - life.service

    def _step_time(self, job: int, devices: Devices) -> float:
        asked, node = self._list[job], next(iter(self.placing.seats.values())).node
        slowest = max(float(self.speeds.slowdown[asked.kind][device]) for device in devices)
        spans = len({node[device] for device in devices}) > 1
        return asked.step_time * slowest * (self.penalty if spans else 1.0)

    def _release(self, job: int, now: float) -> None:
        self._lives[job].spells.append((self._since.pop(job), now, self._held.pop(job)))
        del self._pace[job]

    def _count_waiting(self) -> None:
        for job in self._active:
            if job not in self._held:
                self._lives[job].waited += self.length
