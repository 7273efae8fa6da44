"""Synergy's clock: rounds in which everything is given out afresh, and at whose end a finish is seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gantline.core.errors import RefusedError
from gantline.systems.synergy.imitation.jobs import Sku, SynergyJob, by_order
from gantline.systems.synergy.imitation.opt import opt
from gantline.systems.synergy.policies import mechanisms
from gantline.systems.synergy.policies.needs import Vector
from gantline.systems.synergy.policies.servers import Seats, Servers


class Mechanism(NamedTuple):
    """How CPUs and memory are divided, and what the orders make of it."""

    divide: Callable[[Sequence[SynergyJob], Servers], mechanisms.Speeds]
    proportional: bool = False
    """Orders count with the speed at the proportional share."""
    tunes: bool = False
    """Orders count with the speed of the last round, where a job was tuned down."""
    limited: bool = False
    """The order is cut to the jobs that GPUs remain for before anything is placed."""


MECHANISMS = {
    "fair": Mechanism(mechanisms.proportional, proportional=True),
    "greedy": Mechanism(mechanisms.greedy),
    "tune": Mechanism(mechanisms.tune, tunes=True),
    "opt": Mechanism(opt, limited=True),
}


@dataclass
class SynergyRounds:
    """The run. It stops at the first round in which no job is there, as the original does, even if others come later."""

    jobs: Sequence[SynergyJob]
    length: float
    order: str
    mechanism: Mechanism
    sku: Sku
    servers: int
    consolidate: bool = False
    static: bool = False
    """Rounds begin at one second."""
    on_round: Callable[[float, int, int], None] | None = None
    ends: dict[int, float] = field(default_factory=dict)
    spells: list[tuple[float, SynergyJob, Seats]] = field(default_factory=list)
    """(begin of the round, job, where)."""
    count: int = 0

    def run(self) -> float:
        """Run; the time at which it stopped."""
        queue = sorted(self.jobs, key=lambda job: job.arrival)
        first = 1.0 if self.static else 0.0
        now = first + max(0.0, math.ceil((queue[0].arrival - first) / self.length)) * self.length if queue else 0.0
        active: list[SynergyJob] = []
        arrived = 0
        while True:
            while arrived < len(queue) and queue[arrived].arrival <= now:
                active.append(queue[arrived])
                arrived += 1
            if not active:
                return now
            if self.on_round is not None:
                self.on_round(now, arrived, len(active))
            active = self._round(active, now)
            self.count += 1
            now += self.length

    def _round(self, active: list[SynergyJob], now: float) -> list[SynergyJob]:
        mechanism, servers = self.mechanism, self._empty_servers()
        cluster = [amount * self.servers for amount in self.sku]
        order = by_order(active, self.order, now, proportional=mechanism.proportional, cluster=cluster)
        for job in active:
            job.speed = job.gain
        if mechanism.limited or self.order == "las":
            order = mechanisms.runnable(order, servers.free)
            if mechanism.tunes:
                order.sort(key=lambda job: -job.gpus)
        speeds = mechanism.divide(order, servers)
        if mechanism.tunes:
            self._check(order, speeds, servers)
        ended = set()
        for need, speed in speeds.items():
            job = self.jobs[need.row]
            if mechanism.tunes:
                job.speed = speed
            job.changes += job.pace not in (0.0, speed)
            job.pace = speed
            job.done += math.floor(self.length / (job.profile.step_time / speed))
            job.attained += self.length * job.gpus
            job.last_ran = now
            self.spells.append((now, job, servers.seats[job]))
            if job.done >= job.steps:
                self.ends[job.row] = now + self.length
                ended.add(job)
        return [job for job in active if job not in ended]

    def _empty_servers(self) -> Servers:
        sku, count = self.sku, self.servers
        share = Vector(sku.cpus / sku.gpus, sku.memory / sku.gpus)
        return Servers([sku.gpus] * count, [sku.cpus] * count, [sku.memory] * count, share, self.consolidate)

    def _check(self, order: Sequence[SynergyJob], speeds: mechanisms.Speeds, servers: Servers) -> None:
        """The original gives up where a job finds no room for its share."""
        for job in order:
            if job not in speeds and job.gpus <= servers.free:
                what = f"the job of row {job.row} finds no room for its share, where Synergy's simulator gives up"
                raise RefusedError(what, where="--regime synergy", fix="use another mechanism or cluster")
