"""A plain simulator of the default regime: objects, lists and sorted(), with no short cut, as an oracle for the compiled one.

It knows one device type, rate one, rankings, rounds or events, first-free and consolidated placement, costs of start and
resume, a minimum run time, load-limit admission and estimates that double when they prove too low. It looks at every round, and
on events at every instant at which anything could change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tests.oracles.plain_walk import Gang, Place, PlainWalk

QUANTUM = 60.0
LIMITS = (2520.0, 5040.0)  # divisible by every gang size up to ten, so that demotions fall on whole seconds


@dataclass
class Job(Gang):
    """One job; its progress is linear from `since` on while it holds devices."""

    row: int = 0
    arrival: float = 0.0
    work: float = 0.0
    estimate: float = 0.0
    gpu_time: float = 0.0
    finish: float = math.nan

    @property
    def gpus(self) -> int:
        return self.ways[0].gpus

    def ran(self, now: float) -> float:
        return max(0.0, now - self.since) if self.runs else 0.0

    def remaining(self, now: float) -> float:
        return max(0.0, self.estimate - (self.done + self.ran(now)))

    def attained(self, now: float) -> float:
        return self.done + self.ran(now)

    def attained_gpu(self, now: float) -> float:
        return self.gpu_time + self.gpus * self.ran(now)

    def due(self) -> float:
        """When it is done, or its estimate proves too low."""
        goal = self.estimate if self.done < self.estimate < self.work else self.work
        return self.since + (goal - self.done)


Key = Callable[[Job, float], tuple[float, ...]]


@dataclass(frozen=True)
class Order:
    """A policy: smaller keys first. `moves`: the order of jobs that run changes by itself; `limits`: GPU-seconds at which a key jumps."""

    key: Key
    preempt: bool = True
    stop_at_misfit: bool = False
    moves: bool = False
    limits: tuple[float, ...] = ()


def tiresias_key(limits: tuple[float, ...]) -> Key:
    def key(job: Job, now: float) -> tuple[float, ...]:
        queue = sum(job.attained_gpu(now) >= limit for limit in limits)
        started = not math.isnan(job.first_start)
        return (queue, 0 if started else 1, job.first_start if started else job.arrival)

    return key


ORDERS: dict[str, Order] = {
    "fifo": Order(lambda job, now: (job.arrival,), preempt=False, stop_at_misfit=True),
    "fifo skip": Order(lambda job, now: (job.arrival,), preempt=False),
    "sjf": Order(lambda job, now: (job.estimate,), preempt=False),
    "srtf": Order(lambda job, now: (job.remaining(now),)),
    "srsf": Order(lambda job, now: (job.remaining(now) * job.gpus,)),
    "smallest": Order(lambda job, now: (job.gpus,)),
    "las": Order(lambda job, now: (job.attained(now),), moves=True),
    "las gpu-time": Order(lambda job, now: (job.attained_gpu(now),), moves=True),
    "tiresias": Order(tiresias_key(LIMITS), limits=LIMITS),
}


@dataclass(frozen=True)
class Interval:
    """A gang held these devices from start to end."""

    row: int
    start: float
    end: float
    devices: tuple[int, ...]


class PlainSimulator(PlainWalk):
    """All of the state in sight; `run` returns the jobs, `intervals` has the log in order of start."""

    def __init__(
        self, order: Order, sizes: Sequence[int], jobs: list[Job], round: float, load_limit: float, min_run: float, consolidated: bool,
        start: float, resume: float, move: float,
    ) -> None:  # fmt: skip
        """`sizes`: devices per node; jobs in order of arrival."""
        first = [0, *accumulate(sizes)]
        nodes = [Place(0, tuple(range(at, at + size)), 0.0, 0.0) for at, size in zip(first, sizes)]
        super().__init__(nodes, list(jobs), start, resume, move, min_run, consolidated=consolidated)
        self.order, self.jobs, self.round, self.load_limit, self.devices = order, jobs, round, load_limit, first[-1]
        self.arriving, self.held_back, self.inside = list(jobs), list[Job](), list[Job]()
        self.intervals: list[Interval] = []
        self.begun = False

    # --- time -----------------------------------------------------------------------------------------------------------
    def run(self) -> list[Job]:
        while (due := self.next_event()) < math.inf:
            self.now = self.instant(due)
            self.begun = True
            self.end_jobs()
            self.admit()
            if any(not job.runs for job in self.inside):
                self.decide()
        self.intervals.sort(key=lambda interval: (interval.start, interval.row))
        return self.jobs

    def next_event(self) -> float:
        running = [job for job in self.inside if job.runs]
        events = [job.arrival for job in self.arriving[:1]] + [job.due() for job in running]
        if len(running) < len(self.inside) and self.order.preempt:
            if self.round:
                events.append(self.now + self.round)
            elif self.order.moves:
                events.append((self.now // QUANTUM + 1) * QUANTUM)
            for job in running:
                limits = [limit for limit in self.order.limits if limit > job.attained_gpu(self.now)]
                changes = [job.since + (limit - job.gpu_time) / job.gpus for limit in limits]
                events += [at for at in [job.last_start + self.min_run, *changes] if at > self.now]
        return min(events, default=math.inf)

    def instant(self, due: float) -> float:
        if not self.round:
            return max(due, self.now)
        boundary = max(0, math.ceil(due / self.round - 1e-9))
        if self.begun:
            boundary = max(boundary, round(self.now / self.round) + 1)
        return boundary * self.round

    def end_jobs(self) -> None:
        for job in list(self.inside):
            if not job.runs or job.due() > self.now:
                continue
            end = job.since + (job.work - job.done)
            if end <= self.now:
                job.finish = end
                self.intervals.append(Interval(job.row, job.last_start, end, job.devices))
                job.way, job.devices = -1, ()
                self.inside.remove(job)
            else:
                job.estimate = 2.0 * (job.done + job.ran(self.now))

    def admit(self) -> None:
        while self.arriving and self.arriving[0].arrival <= self.now:
            self.held_back.append(self.arriving.pop(0))
        while self.held_back and sum(job.gpus for job in self.inside) <= self.load_limit * self.devices:
            self.inside.append(self.held_back.pop(0))

    # --- one decision ---------------------------------------------------------------------------------------------------
    def decide(self) -> None:
        """Walk the ranking, and write down what those held who were stopped or moved."""
        before = [(job.row, job.last_start, job.devices) for job in self.inside if job.runs]
        places = [job.row for job in sorted(self.inside, key=lambda job: (*self.order.key(job, self.now), job.row))]
        self.rank(places, self.now, self.order.preempt, self.order.stop_at_misfit)
        self.intervals += [Interval(row, start, self.now, had) for row, start, had in before if self.jobs[row].devices != had]

    def settle(self, gang: Gang, way: int, at: float) -> None:
        gang.gpu_time += gang.ways[way].gpus * max(0.0, at - gang.since)
        super().settle(gang, way, at)
