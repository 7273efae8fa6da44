"""The three policies of Pollux' simulator: Tiresias, Optimus with an oracle, and Pollux with its fitted beliefs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.rng import stream
from gantline.models.goodput.batch import GOODPUT, choose_batch
from gantline.models.solvers.allocation_search.search import Demand, Found, Workspace, search
from gantline.systems.pollux.imitation.clock import (
    APP,
    MODEL,
    MOST,
    RESTART,
    RESTARTS,
    SEEN,
    SERVICE,
    SQUARE,
    SUBMIT,
    VARIANCE,
    Courses,
    PolluxJobs,
)
from gantline.systems.pollux.imitation.loop import Nodes, free_devices, take

# Tiresias in Pollux' simulator: two queues by attained GPU time, in each first come first; a job that does not fit is skipped.


LIMIT = 57600.0  # GPU-seconds in the first queue: sixteen GPU-hours


@dataclass
class TiresiasInPollux:
    """The queues, and how long each job has run."""

    requested: Ints
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


# Pollux' beliefs: how much faster each job would be on so many devices, from the models fitted so far.
#
# Speedups are relative to the job's fair share of the cluster, which the original prices as if it were on one node.
# Goodput depends on nodes only through "one" or "several", so two rows of numbers per job are enough; they are kept
# until model or gradient noise change.

# what a job's goodputs were computed for
_ROWS, _SQUARE, _VARIANCE, _DEVICES = range(4)


class Beliefs:
    """Goodputs of all jobs on one node and on several, computed as they are needed."""

    def __init__(self, jobs: int, devices: int, per_node: int) -> None:
        self.per_node = per_node
        self.goodput = np.zeros((jobs, 2, devices + 1))
        self.known = np.full((jobs, 4), -1.0)

    def speedups(self, jobs: PolluxJobs, courses: Courses, rows: Ints, most: Ints, fair: int) -> Floats:
        """Speedups [job, 2, devices] of some jobs, each up to its own limit."""
        found = np.zeros((len(rows), 2, int(most.max(initial=1)) + 1))
        fill_speedups(jobs, courses, rows, most, fair, self.per_node, self.goodput, self.known, found)
        return found


@kernel
def fill_speedups(
    jobs: PolluxJobs, courses: Courses, rows: Ints, most: Ints, fair: int, per_node: int, goodput: Floats, known: Floats, found: Floats
) -> None:
    """Goodputs where they changed, and the speedups that follow from them."""
    F, I, out = jobs.F, jobs.I, jobs.out
    for place in range(rows.size):
        j = rows[place]
        limits = courses.limits[I[APP, j]]
        square, variance = F[SQUARE, j], F[VARIANCE, j]
        if I[MODEL, j] == 0:
            for k in range(1, most[place] + 1):
                found[place, 0, k] = found[place, 1, k] = k / fair
            continue
        old = known[j]
        if old[_ROWS] != I[SEEN, j] or old[_SQUARE] != square or old[_VARIANCE] != variance or old[_DEVICES] < most[place]:
            old[_ROWS], old[_SQUARE], old[_VARIANCE], old[_DEVICES] = I[SEEN, j], square, variance, most[place]
            for k in range(1, most[place] + 1):
                if k <= per_node:
                    choose_batch(jobs.model[j], square, variance, 1, k, limits, out)
                    goodput[j, 0, k] = out[GOODPUT]
                if k > 1:
                    choose_batch(jobs.model[j], square, variance, 2, k, limits, out)
                    goodput[j, 1, k] = out[GOODPUT]
        choose_batch(jobs.model[j], square, variance, 1, fair, limits, out)
        base = out[GOODPUT] if out[GOODPUT] > 0.0 else goodput[j, 0, 1]  # a fair share that no batch is right for: one device
        for k in range(1, most[place] + 1):
            if base > 0.0:
                found[place, 0, k], found[place, 1, k] = goodput[j, 0, k] / base, goodput[j, 1, k] / base


# Pollux' policy in its own simulator: a population search every interval, begun with the best allocations of the last one.

MOST_DEVICES = 64  # of one job, whatever the cluster
MOST_NODES = 16


@dataclass
class PolluxInItsSimulator:
    """The population of the last decision, and how to judge jobs."""

    jobs: Callable[[], PolluxJobs]
    speedups: Callable[[Ints, Ints, int], Floats]  # of some jobs up to their limits, relative to a fair share
    limit: Ints  # devices per job that batches allow
    capacity: Ints
    power: float = -1.0
    restart: float = RESTART
    avoid: bool = True
    size: int = 100
    generations: int = 100
    seed: int = 0
    decisions: int = 0
    known: dict[int, int] = field(default_factory=dict)  # job -> its row in the last population
    front: Ints | None = None
    workspace: Workspace = field(default_factory=Workspace)

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        """Which job gets which nodes; jobs that are not named get none."""
        jobs, nodes = self.jobs(), len(self.capacity)
        F, I = jobs.F, jobs.I
        given = np.array(active, dtype=np.int64)
        rows = given[np.lexsort((F[SUBMIT, given], F[SERVICE, given]))]
        order: list[int] = rows.tolist()
        devices = int(self.capacity.sum())
        most = np.minimum(np.minimum(np.maximum(2 * I[MOST, rows], 1), min(MOST_DEVICES, devices)), self.limit[rows])
        age = now - F[SUBMIT, rows]
        penalty = np.maximum(age - self.restart * I[RESTARTS, rows].clip(0), 0.0) / np.maximum(age + self.restart, 1e-9)
        cells = [place * nodes + node for place, job in enumerate(order) for node in held[job]]
        present = np.bincount(np.array(cells, dtype=np.int64), minlength=len(order) * nodes).reshape(-1, nodes)
        speedup = self.speedups(rows, most, -(-devices // len(order)))
        demand = Demand(present, most, speedup, penalty, nodes / devices, self.power)
        found = search(
            demand,
            self.capacity,
            int(stream(self.seed, self.decisions, "pollux").integers(1 << 63)),
            start=self._start(order, nodes),
            size=self.size,
            generations=self.generations,
            avoid=self.avoid,
            most_nodes=MOST_NODES,
            workspace=self.workspace,
        )
        self.decisions += 1
        self._keep(order, found)
        taken = np.repeat(np.tile(np.arange(nodes), len(order)), found.best.ravel()).tolist()
        ends = np.cumsum(found.best.sum(axis=1)).tolist()
        return {job: tuple(taken[begin:end]) for job, begin, end in zip(order, [0, *ends], ends)}

    def _keep(self, order: list[int], found: Found) -> None:
        self.known = {job: place for place, job in enumerate(order)}
        self.front = found.front

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
