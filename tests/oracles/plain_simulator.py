"""A plain simulator of the default regime: objects, lists and sorted(), with no short cut, as an oracle for the compiled one.

It knows one device type, rate one, rankings, rounds or events, first-free and consolidated placement, costs of start and
resume, a minimum run time, load-limit admission and estimates that double when they prove too low. It looks at every round, and
on events at every instant at which anything could change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

QUANTUM = 60.0
LIMITS = (2520.0, 5040.0)  # divisible by every gang size up to ten, so that demotions fall on whole seconds


@dataclass
class Job:
    """One job; its progress is linear from `since` on while it holds devices."""

    row: int
    arrival: float
    gpus: int
    work: float
    estimate: float
    done: float = 0.0
    service: float = 0.0
    gpu_time: float = 0.0
    since: float = 0.0
    devices: list[int] = field(default_factory=list)
    first_start: float = math.nan
    last_start: float = math.nan
    finish: float = math.nan
    preemptions: int = 0

    def ran(self, now: float) -> float:
        return max(0.0, now - self.since) if self.devices else 0.0

    def remaining(self, now: float) -> float:
        return max(0.0, self.estimate - (self.done + self.ran(now)))

    def attained(self, now: float) -> float:
        return self.service + self.ran(now)

    def attained_gpu(self, now: float) -> float:
        return self.gpu_time + self.gpus * self.ran(now)

    def settle(self, now: float) -> None:
        seconds = self.ran(now)
        self.done += seconds
        self.service += seconds
        self.gpu_time += self.gpus * seconds
        self.since = now

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


@dataclass
class PlainSimulator:
    """All of the state in sight; `run` returns the jobs, `intervals` has the log in order of start."""

    order: Order
    nodes: Sequence[int]  # devices per node
    jobs: list[Job]  # in order of arrival
    round: float = 0.0
    consolidated: bool = False
    start_cost: float = 0.0
    resume_cost: float = 0.0
    move_cost: float = 0.0
    min_run: float = 0.0
    load_limit: float = math.inf
    intervals: list[Interval] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = 0.0
        self.arriving = list(self.jobs)
        self.held_back: list[Job] = []
        self.inside: list[Job] = []
        self.node_of = [node for node, size in enumerate(self.nodes) for _ in range(size)]
        self.free = set(range(len(self.node_of)))
        self.opened: dict[int, tuple[float, tuple[int, ...]]] = {}
        self.begun = False

    # --- time -----------------------------------------------------------------------------------------------------------
    def run(self) -> list[Job]:
        while (due := self.next_event()) < math.inf:
            self.now = self.instant(due)
            self.begun = True
            self.finish()
            self.admit()
            if any(not job.devices for job in self.inside):
                self.walk()
        self.intervals.sort(key=lambda interval: (interval.start, interval.row))
        return self.jobs

    def next_event(self) -> float:
        running = [job for job in self.inside if job.devices]
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

    def finish(self) -> None:
        for job in list(self.inside):
            if not job.devices or job.due() > self.now:
                continue
            end = job.since + (job.work - job.done)
            if end <= self.now:
                job.settle(end)
                job.finish = end
                self.release(job, end)
                self.inside.remove(job)
            else:
                job.estimate = 2.0 * (job.done + job.ran(self.now))

    def admit(self) -> None:
        while self.arriving and self.arriving[0].arrival <= self.now:
            self.held_back.append(self.arriving.pop(0))
        while self.held_back and sum(job.gpus for job in self.inside) <= self.load_limit * len(self.node_of):
            self.inside.append(self.held_back.pop(0))

    # --- one decision ---------------------------------------------------------------------------------------------------
    def walk(self) -> None:
        """Rank by rank: who runs stays, who waits takes free devices or those of gangs behind it, victims come back if they can."""
        ranks = sorted(self.inside, key=lambda job: (*self.order.key(job, self.now), job.row))
        victims: dict[int, list[int]] = {}
        for place, job in enumerate(ranks):
            if job.devices:
                continue
            own = victims.get(job.row, [])
            if own and self.free.issuperset(own):
                self.hold(job, victims.pop(job.row))
                continue
            chosen = self.choose(job.gpus)
            if chosen is None and self.order.preempt:
                chosen = self.make_room(job, ranks[place + 1 :], victims)
            if chosen is not None:
                moved = job.row in victims
                if moved:
                    self.halt(job, victims.pop(job.row))
                self.start(job, chosen, moved)
            elif self.order.stop_at_misfit:
                break
        for job in ranks:
            if job.row in victims:
                self.halt(job, victims[job.row])

    def make_room(self, job: Job, behind: list[Job], victims: dict[int, list[int]]) -> list[int] | None:
        """Stop gangs that rank behind, the last first, until the job fits; if it never does, nobody was stopped."""
        candidates = [other for other in reversed(behind) if other.devices and self.movable(other)]
        if self.consolidated and job.gpus <= max(self.nodes):
            node = self.first_cleared(candidates, job.gpus)
            candidates = [other for other in candidates if node in {self.node_of[device] for device in other.devices}]
        trial: list[Job] = []
        for other in candidates:
            trial.append(other)
            victims[other.row] = other.devices
            self.free.update(other.devices)
            other.devices = []
            chosen = self.choose(job.gpus)
            if chosen is not None:
                return chosen
        for other in trial:
            self.hold(other, victims.pop(other.row))
        return None

    def movable(self, job: Job) -> bool:
        return self.now >= job.last_start + self.min_run

    def first_cleared(self, candidates: list[Job], need: int) -> int:
        """The node that would have room first if gangs were stopped one after the other; -1: none ever has."""
        room = self.room()
        for other in candidates:
            for device in other.devices:
                room[self.node_of[device]] += 1
                if room[self.node_of[device]] >= need:
                    return self.node_of[device]
        return -1

    # --- devices --------------------------------------------------------------------------------------------------------
    def room(self) -> list[int]:
        return [sum(self.node_of[device] == node for device in self.free) for node in range(len(self.nodes))]

    def choose(self, need: int) -> list[int] | None:
        """The devices a gang would get now."""
        room = self.room()
        shares: list[tuple[int, int]] = []
        if not self.consolidated:
            left = need
            for node, have in enumerate(room):
                shares.append((node, min(have, left)))
                left -= min(have, left)
            return self.devices(shares) if left == 0 else None
        fitting = [(have, node) for node, have in enumerate(room) if have >= need]
        if fitting:
            return self.devices([(min(fitting)[1], need)])
        if need <= max(self.nodes):
            return None
        left = need
        for node, have in enumerate(room):
            if have == self.nodes[node] and left > 0:
                shares.append((node, min(have, left)))
                left -= min(have, left)
        return self.devices(shares) if left == 0 else None

    def devices(self, shares: list[tuple[int, int]]) -> list[int]:
        """The lowest free devices on each node."""
        return [device for node, count in shares for device in sorted(d for d in self.free if self.node_of[d] == node)[:count]]

    def hold(self, job: Job, devices: list[int]) -> None:
        job.devices = devices
        self.free.difference_update(devices)

    def release(self, job: Job, at: float) -> None:
        start, devices = self.opened.pop(job.row)
        self.intervals.append(Interval(job.row, start, at, devices))
        self.free.update(job.devices)
        job.devices = []

    def start(self, job: Job, devices: list[int], moved: bool) -> None:
        self.hold(job, devices)
        first = math.isnan(job.first_start)
        job.first_start = self.now if first else job.first_start
        job.last_start = self.now
        job.since = self.now + (self.move_cost if moved else self.start_cost if first else self.resume_cost)
        self.opened[job.row] = (self.now, tuple(devices))

    def halt(self, job: Job, devices: list[int]) -> None:
        """The gang stops for good (its devices are free already); what it has done is saved."""
        job.devices = devices
        job.settle(self.now)
        job.devices = []
        job.preemptions += 1
        start, held = self.opened.pop(job.row)
        self.intervals.append(Interval(job.row, start, self.now, held))
