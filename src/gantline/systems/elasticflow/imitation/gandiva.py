"""Gandiva as ElasticFlow's artifact has it: sets of nodes by size of gang, which their jobs take turns on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gantline.systems.elasticflow.imitation.rigid import RigidJobs, RigidRun

CLASSES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256)  # sizes of gangs that it supports
_TURN = 60  # jobs change turns in rounds at whole minutes


@dataclass(eq=False)
class NodeSet:
    """So many nodes for gangs of one size."""

    nodes: int
    capacity: int  # gangs at a time
    load: int = 0  # jobs put here since they were last distributed: ends do not lower it
    jobs: list[int] = field(default_factory=list)

    def put(self, job: int) -> None:
        self.jobs.append(job)
        self.load += 1


class GandivaRun(RigidRun):
    """One run: a round at each arrival, and when no more come, one in each slot."""

    def __init__(self, jobs: RigidJobs, capacity: int, per_node: int, slot: float) -> None:
        super().__init__(jobs, capacity, per_node, slot)
        self.sets: dict[int, list[NodeSet]] = {size: [] for size in CLASSES}
        self.free = capacity // per_node  # nodes
        self.executed, self.lost = [0.0] * len(jobs), [0.0] * len(jobs)
        self.pending: list[int] = []
        self.running: list[int] = []  # placed, whether or not it is their turn
        self.waited: list[int] = []  # jobs that were ever pending

    def run(self) -> None:
        """Run until no job is left."""
        now, passed, charged = self.arrivals[0][0] if self.arrivals else 0.0, 0.0, 0
        while self.arrivals or self.pending or self.running:
            self._adjust()
            released = self._execute(now, passed)
            for job in self.waited:
                self.lost[job] = 0.0
            if self.arrivals and self.arrivals[0][0] == now:
                for job in self.arrivals.pop(0)[1]:
                    self._enter(job, now)
            if released:
                self._start_pending(now)
            self.round_ended(now)
            if not self.arrivals:
                now, passed = now + self.slot, self.slot
                continue
            restart = self.is_restart(charged)
            charged += 1
            for job in self.running:
                self.lost[job] = self.seconds_to_start(self.size[job], restart)
            self.merge_arrivals(now)
            now, passed = self.arrivals[0][0], self.arrivals[0][0] - now

    def _enter(self, job: int, now: float) -> None:
        if self._place(job):
            self.start[job] = now
            self.running.append(job)
        else:
            self.pending.append(job)
            self.waited.append(job)

    def _start_pending(self, now: float) -> None:
        """Try the jobs that wait; after each that starts the next is skipped, because the original shortens the list it walks."""
        k = 0
        while k < len(self.pending):
            job = self.pending[k]
            if self._place(job):
                self.pending.remove(job)
                self.running.append(job)
                self.start[job] = now
            k += 1

    def _nodes(self, size: int) -> int:
        """Nodes of a set for gangs of that size."""
        return math.ceil(size / self.per_node)

    def _new_set(self, size: int) -> NodeSet:
        nodes = self._nodes(size)
        self.free -= nodes
        return NodeSet(nodes, nodes * self.per_node // size)

    def _place(self, job: int) -> bool:
        """Into the set that is loaded least if a place is left beside it, else on free nodes, else in turns with others."""
        size = self.size[job]
        known = self.sets[size]
        if known:
            least = known.pop(0)
            known.append(least)
            if least.load + 1 < least.capacity:
                least.put(job)
                known.sort(key=_load)
                return True
        if self._nodes(size) <= self.free:
            known.append(self._new_set(size))
            known[-1].put(job)
        elif known:
            known.append(known.pop(0))
            known[-1].put(job)
        else:
            return False
        known.sort(key=_load)
        return True

    def _adjust(self) -> None:
        """Nodes to sizes by their part of all GPUs that are asked for."""
        wanted = {size: size * sum(len(one.jobs) for one in known) for size, known in self.sets.items()}
        have = {size: self.per_node * sum(one.nodes for one in known) for size, known in self.sets.items()}
        total = sum(wanted.values())
        for size, known in self.sets.items():
            if wanted[size] == 0:
                continue
            part = min(math.floor(wanted[size] / total * self.capacity), wanted[size])
            if part > have[size]:
                self._expand(size, known, math.ceil((part - have[size]) / size))
            elif part < have[size]:
                self._shrink(known, math.ceil((have[size] - part) / size))

    def _expand(self, size: int, known: list[NodeSet], more: int) -> None:
        """Add so many sets, while free nodes last. Whether jobs are distributed anew depends on a counter that the original uses twice."""
        counter = 0
        for k in range(1, more + 1):
            counter = k
            if self._nodes(size) <= self.free:
                known.append(self._new_set(size))
                counter = known[-1].nodes - 1
        if counter > 0:
            jobs = [job for one in known for job in one.jobs]
            for one in known:
                if one.jobs:
                    one.jobs, one.load = [], 0
            _deal(jobs, known)

    def _shrink(self, known: list[NodeSet], fewer: int) -> None:
        """Give up the least loaded sets, but for one."""
        jobs = []
        for _ in range(min(fewer, len(known) - 1)):
            gone = known.pop(0)
            jobs += gone.jobs
            self.free += gone.nodes
        _deal(jobs, known)

    def _execute(self, now: float, passed: float) -> bool:
        """The first jobs of every set ran since the last round; ends are dated back. Returns whether nodes became free."""
        released = False
        for size, known in self.sets.items():
            for one in list(known):
                turn = one.jobs[: one.capacity]
                over = [job for job in turn if self._ran(job, now, passed)]
                if now % _TURN == 0 and len(one.jobs) > len(turn):
                    one.jobs = one.jobs[len(turn) :] + turn
                for job in over:
                    self.running.remove(job)
                    one.jobs.remove(job)
                if not one.jobs:
                    self.free += one.nodes
                    released = True
            self.sets[size] = [one for one in known if one.jobs]
        return released

    def _ran(self, job: int, now: float, passed: float) -> bool:
        """Count what a job did; whether it is done."""
        if passed:
            self.held(job, now - passed, now)
        self.executed[job] += max(passed - self.lost[job], 0.0)
        self.lost[job] = 0.0
        if self.executed[job] < self.duration[job]:
            return False
        self.end[job], self.ended[job] = now - (self.executed[job] - self.duration[job]), now
        return True


def _load(one: NodeSet) -> int:
    return one.load


def _deal(jobs: list[int], known: list[NodeSet]) -> None:
    """Each to the set that is loaded least."""
    for job in jobs:
        known[0].put(job)
        known.sort(key=_load)
