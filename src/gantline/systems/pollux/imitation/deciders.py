"""The three policies of Pollux' simulator: Tiresias, Optimus with an oracle, and Pollux with its fitted beliefs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.rng import stream
from gantline.models.goodput.batch import GOODPUT, choose_batch
from gantline.models.solvers.allocation_search.search import Demand, Workspace, restart_penalty, search
from gantline.systems.pollux.imitation.jobs import Nodes, PolluxJob
from gantline.systems.pollux.policies import Pollux


def free_devices(capacity: Sequence[int], held: Iterable[Nodes]) -> list[int]:
    """What is left on each node."""
    free = list(capacity)
    for nodes in held:
        for node in nodes:
            free[node] -= 1
    return free


def take(free: list[int], wanted: int) -> Nodes:
    """So many devices, each time from the node with most that are free; ``free`` becomes less. There must be enough."""
    taken: list[int] = []
    while wanted:
        node = max(range(len(free)), key=free.__getitem__)
        count = min(free[node], wanted)
        free[node] -= count
        wanted -= count
        taken += [node] * count
    return tuple(taken)


# Tiresias in Pollux' simulator: two queues by attained GPU time, in each first come first; a job that does not fit is skipped.


LIMIT = 57600.0  # GPU-seconds in the first queue: sixteen GPU-hours


@dataclass
class TiresiasInPollux:
    """The queues, and how long each job has run."""

    requested: Sequence[int]
    capacity: Sequence[int]
    limit: float = LIMIT
    first: dict[int, None] = field(default_factory=dict)
    second: dict[int, None] = field(default_factory=dict)
    executed: dict[int, float] = field(default_factory=dict)
    checked: float = 0.0

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        """Which job gets which nodes; jobs that are not named get none."""
        present = set(active)
        for queue in (self.first, self.second):
            for job in [job for job in queue if job not in present]:
                del queue[job]
        passed, self.checked = now - self.checked, now
        for job in active:
            if job not in self.executed:
                self.executed[job] = 0.0
                self.first[job] = None
            elif held[job]:
                self.executed[job] += passed
                if job in self.first and self.executed[job] * self.requested[job] >= self.limit:
                    del self.first[job]
                    self.second[job] = None
        left, running = sum(self.capacity), []
        for job in [*self.first, *self.second]:
            if self.requested[job] <= left:
                left -= int(self.requested[job])
                running.append(job)
        kept = {job: held[job] for job in running if held[job]}
        free = free_devices(self.capacity, kept.values())
        return {job: kept.get(job) or take(free, int(self.requested[job])) for job in running}


# Optimus (EuroSys 2018) in Pollux' simulator, with an oracle: each device goes to the job whose remaining time falls most by it.


@dataclass
class OptimusInPollux:
    """What the oracle gives of each job: seconds a step by devices, and the steps to come."""

    capacity: Sequence[int]
    step_time: Callable[[int], Sequence[float]]  # of a job: index is devices, its length is one more than it may have
    remaining: Callable[[int], float]

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        """Which job gets which nodes; jobs that are not named get none."""
        sizes = self._sizes(active)
        kept = {job: held[job] for job, size in sizes.items() if len(held[job]) == size}
        free = free_devices(self.capacity, kept.values())
        found = dict(kept)
        for job in sorted((job for job in sizes if job not in kept), key=sizes.__getitem__):
            found[job] = take(free, sizes[job])
        return found

    def _sizes(self, active: Sequence[int]) -> dict[int, int]:
        """One device each while there are any, then the one that saves most, again and again."""
        left = sum(self.capacity)
        sizes = dict.fromkeys(active[:left], 1)
        left -= len(sizes)
        known = {job: (self.step_time(job), self.remaining(job)) for job in sizes}
        gains: list[tuple[float, int, int]] = []
        for place, job in enumerate(sizes):
            _offer(gains, *known[job], 1, place, job)
        while left and gains:
            _, place, job = heapq.heappop(gains)
            sizes[job] += 1
            left -= 1
            _offer(gains, *known[job], sizes[job], place, job)
        return sizes


def _offer(gains: list[tuple[float, int, int]], times: Sequence[float], steps: float, size: int, place: int, job: int) -> None:
    """What one more device would save a job of so many steps."""
    if size + 1 < len(times):
        gain = (times[size] - times[size + 1]) * steps
        if gain > 0.0:
            heapq.heappush(gains, (-gain, place, job))


# Pollux' policy in its own simulator: a population search every interval, begun with the best allocations of the last one.

MOST_DEVICES = 64  # of one job, whatever the cluster
MOST_NODES = 16


@dataclass
class PolluxInItsSimulator:
    """The population of the last decision, and what is believed of jobs: goodputs by the models fitted so far."""

    jobs: Sequence[PolluxJob]
    capacity: Ints
    policy: Pollux
    seed: int = 0
    decisions: int = 0
    known: dict[int, int] = field(default_factory=dict)  # job -> its row in the last population
    front: Ints | None = None
    workspace: Workspace = field(default_factory=Workspace)
    goodputs: dict[int, tuple[object, Floats]] = field(default_factory=dict)  # job -> what they were computed for, and they

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        """Which job gets which nodes; jobs that are not named get none."""
        policy, nodes, devices = self.policy, len(self.capacity), int(self.capacity.sum())
        order = sorted(active, key=lambda job: (self.jobs[job].gpu_seconds, self.jobs[job].submit))
        jobs = [self.jobs[job] for job in order]
        most = np.array([min(max(2 * job.most, 1), MOST_DEVICES, devices, _widest(job)) for job in jobs])
        age, restarts = np.array([now - job.submit for job in jobs]), np.array([job.restarts for job in jobs])
        penalty = restart_penalty(age, restarts, policy.restart)
        cells = [place * nodes + node for place, job in enumerate(order) for node in held[job]]
        present = np.bincount(np.array(cells, dtype=np.int64), minlength=len(order) * nodes).reshape(-1, nodes)
        demand = Demand(present, most, self._speedups(jobs, most, -(-devices // len(order))), penalty, nodes / devices, policy.p)
        found = search(
            demand,
            self.capacity,
            int(stream(self.seed, self.decisions, "pollux").integers(1 << 63)),
            start=self._start(order, nodes),
            size=policy.size,
            generations=policy.generations,
            avoid=policy.avoid,
            most_nodes=MOST_NODES,
            workspace=self.workspace,
        )
        self.decisions += 1
        self.known, self.front = {job: place for place, job in enumerate(order)}, found.front
        taken = np.repeat(np.tile(np.arange(nodes), len(order)), found.best.ravel()).tolist()
        ends = np.cumsum(found.best.sum(axis=1)).tolist()
        return {job: tuple(taken[begin:end]) for job, begin, end in zip(order, [0, *ends], ends)}

    def _speedups(self, jobs: Sequence[PolluxJob], most: Ints, fair: int) -> Floats:
        """Speedups [job, one node or several, devices] over a fair share of the cluster, which the original prices as if on one node."""
        found, work = np.zeros((len(jobs), 2, int(most.max(initial=1)) + 1)), np.zeros(3)
        for row, job, limit in zip(found, jobs, most.tolist()):
            if job.model is None:
                row[:, 1 : limit + 1] = np.arange(1, limit + 1) / fair
                continue
            limits, made_for = job.application.row, (len(job.rows), job.noise)
            before, goodput = self.goodputs.get(job.row, (None, row))
            if before != made_for or goodput.shape[1] <= limit:
                goodput = np.zeros((2, limit + 1))
                _find_goodputs(job.model, *job.noise, int(self.capacity.max()), limits, goodput, work)
                self.goodputs[job.row] = made_for, goodput
            choose_batch(job.model, *job.noise, 1, fair, limits, work)
            base = work[GOODPUT] if work[GOODPUT] > 0.0 else goodput[0, 1]  # a fair share that no batch is right for: one device
            if base > 0.0:
                row[:, 1 : limit + 1] = goodput[:, 1 : limit + 1] / base
        return found

    def _start(self, order: list[int], nodes: int) -> Ints | None:
        """The front of the last decision for the jobs that are still there; new jobs have nothing.

        Rows are handed on in their order, not by name: the third of the jobs that stayed gets the row of the third job then, as in the
        original. Jobs that have overtaken one another in service since begin with each other's rows.
        """
        if self.front is None:
            return None
        start = np.zeros((len(self.front), len(order), nodes), dtype=self.front.dtype)
        here = [place for place, job in enumerate(order) if job in self.known]
        there = sorted(self.known[order[place]] for place in here)
        start[:, here] = self.front[:, there]
        return start


def _widest(job: PolluxJob) -> int:
    """The most devices that the batches of a job allow."""
    limits = job.application.limits
    return 1 if job.pinned else max(int(limits.most // limits.local_least), 1)


@kernel
def _find_goodputs(p: Floats, square: float, variance: float, per_node: int, limits: Floats, out: Floats, work: Floats) -> None:
    """The goodput of a job on one node and on several; a node has `per_node` devices."""
    for k in range(1, out.shape[1]):
        if k <= per_node:
            choose_batch(p, square, variance, 1, k, limits, work)
            out[0, k] = work[GOODPUT]
        if k > 1:
            choose_batch(p, square, variance, 2, k, limits, work)
            out[1, k] = work[GOODPUT]
