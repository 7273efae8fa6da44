"""Pollux' policy in its own simulator: a population search every interval, begun with the best allocations of the last one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.rng import stream
from gantline.models.solvers.allocation_search.search import Demand, Found, Workspace, search
from gantline.systems.pollux.imitation.clock import RESTART, Column, PolluxJobs
from gantline.systems.pollux.imitation.placing import Nodes

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
        rows = given[np.lexsort((F[Column.SUBMIT, given], F[Column.SERVICE, given]))]
        order: list[int] = rows.tolist()
        devices = int(self.capacity.sum())
        most = np.minimum(np.minimum(np.maximum(2 * I[Column.MOST, rows], 1), min(MOST_DEVICES, devices)), self.limit[rows])
        age = now - F[Column.SUBMIT, rows]
        penalty = np.maximum(age - self.restart * I[Column.RESTARTS, rows].clip(0), 0.0) / np.maximum(age + self.restart, 1e-9)
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
