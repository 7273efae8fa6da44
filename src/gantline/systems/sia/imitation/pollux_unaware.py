"""Pollux in a mixed cluster, as Sia's authors compare with it: it knows neither GPU types nor nodes of more than four GPUs.

Every larger node is shown to the search as several of four. Measurements of a job on any type go into one model, and batches are those of
its profile on T4, whatever the cluster has. No job gets more GPUs than the smallest type has in all, so that it could run on any. An answer
that mixes types keeps the type with most GPUs (faster types on ties); the GPUs of the others idle for the round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.rng import stream
from gantline.models.goodput.batch import GOODPUT, choose_batch
from gantline.models.solvers.allocation_search.search import Demand, restart_penalty, search
from gantline.policies.node_classes import NodeClass
from gantline.systems.pollux.policies import Pollux
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.rounds import RoundScheduler, SiaGrant

_VIRTUAL = 4  # GPUs of a node as Pollux sees it
_MOST_NODES = 16
_PROFILED = "aws"  # the type by which it knows an application's batches
_FASTEST_FIRST = ("dgx-ext", "dgx", "a100", "azure", "v100", "quad", "rtx", "aws", "t4")


class PolluxScheduler(RoundScheduler):
    """A population search every round, begun with the best allocations of the last one."""

    def __init__(self, classes: Sequence[NodeClass], policy: Pollux, seed: int) -> None:
        self._classes, self._policy, self._seed, self._decisions = classes, policy, seed, 0
        pieces = [
            (k, node, min(_VIRTUAL, one.size - first))
            for k, one in enumerate(classes)
            for node in range(len(one.nodes))
            for first in range(0, one.size, _VIRTUAL)
        ]
        self._group, self._node, self._capacity = np.array(pieces, dtype=np.int64).T.copy()
        rank = {kind: place for place, kind in enumerate(_FASTEST_FIRST)}
        pools = {one.type: sum(each.gpus for each in classes if each.type == one.type) for one in classes}
        self._most = min(pools.values())
        self._preference = sorted(range(len(classes)), key=lambda k: (rank.get(classes[k].type, len(rank)), k))
        self._holds: dict[int, Ints] = {}
        self._rows: dict[int, int] = {}
        self._front: Ints | None = None

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """Which job gets which nodes."""
        order = sorted(range(len(jobs)), key=lambda i: (jobs[i].gpu_seconds, jobs[i].asked.submit))
        ranked = [jobs[i] for i in order]
        nothing = np.zeros(len(self._capacity), dtype=np.int64)
        present = np.stack([self._holds.get(job.asked.row, nothing) for job in ranked])
        devices = int(self._capacity.sum())
        most = np.array([min(_most(job), self._most) for job in ranked], dtype=np.int64)
        age = np.array([now - job.asked.submit for job in ranked])
        restarts = np.array([job.restarts for job in ranked])
        penalty = restart_penalty(age, restarts, self._policy.restart)
        speedup = _speedups(ranked, most, -(-devices // len(jobs)))
        found = search(
            Demand(present, most, speedup, penalty, len(self._capacity) / devices, self._policy.p),
            self._capacity,
            int(stream(self._seed, self._decisions, "pollux").integers(1 << 63)),
            start=self._start(ranked),
            size=self._policy.size,
            generations=self._policy.generations,
            avoid=self._policy.avoid,
            most_nodes=_MOST_NODES,
        )
        self._decisions += 1
        self._front, self._rows = found.front, {job.asked.row: place for place, job in enumerate(ranked)}
        chosen: list[SiaGrant | None] = [None] * len(jobs)
        self._holds = {}
        for place, i in enumerate(order):
            kept = self._one_type(found.best[place])
            if kept.any():
                self._holds[jobs[i].asked.row] = kept
                chosen[i] = self._grant(kept)
        return chosen

    def _one_type(self, row: Ints) -> Ints:
        """Only the nodes of the class with most GPUs."""
        sums = np.bincount(self._group, weights=row, minlength=len(self._classes))
        best = max(self._preference, key=lambda k: sums[k])  # the first of equals
        return np.where(self._group == best, row, 0)

    def _grant(self, row: Ints) -> SiaGrant:
        """GPUs of real nodes."""
        group = int(self._group[np.flatnonzero(row)[0]])
        mine = self._group == group
        per_node = np.bincount(self._node[mine], weights=row[mine]).astype(np.int64)
        parts = tuple((int(node), int(per_node[node])) for node in np.flatnonzero(per_node))
        return SiaGrant(group, int(row.sum()), parts)

    def _start(self, ranked: Sequence[SiaJob]) -> Ints | None:
        """The front of the last decision, rows by job; new jobs have nothing."""
        if self._front is None:
            return None
        start = np.zeros((len(self._front), len(ranked), len(self._capacity)), dtype=np.int64)
        both = [(place, self._rows[job.asked.row]) for place, job in enumerate(ranked) if job.asked.row in self._rows]
        if both:
            here, there = zip(*both, strict=True)
            start[:, list(here)] = self._front[:, list(there)]
        return start


def _local_batches(job: SiaJob) -> tuple[float, float]:
    """The least and the largest local batch: of the profile by which it knows the application, else of the types that there are."""
    if job.application.runs_on(_PROFILED):
        times = job.application.on(_PROFILED)
        return float(times.local_least), float(times.local_most)
    types = job.types.values()
    return min(measured.local_least for measured in types), max(measured.policy_most for measured in types)


def _most(job: SiaJob) -> int:
    """Twice the replicas it has run with, at least one, and no more than its largest batch has local batches."""
    least, _ = _local_batches(job)
    seen = max(belief.most_replicas for belief in job.beliefs.values())
    return min(max(2 * seen, 1), max(int(job.training.most // least), 1))


def _speedups(jobs: Sequence[SiaJob], most: Ints, fair: int) -> Floats:
    """Goodput on so many GPUs of one node and of several, over that of a fair share, which is priced as if it were on one node."""
    found = np.zeros((len(jobs), 2, int(most.max(initial=1)) + 1))
    work = np.zeros(3)
    for place, job in enumerate(jobs):
        model = next(iter(job.beliefs.values())).parameters
        if model is None:
            found[place, :, 1 : most[place] + 1] = np.arange(1, most[place] + 1) / fair
            continue
        least, largest = _local_batches(job)
        limits = np.array([job.training.base, job.training.most, least, largest, 1.0])
        _fill(model, *job.noise, fair, limits, found[place, :, : most[place] + 1], work)
    return found


@kernel
def _fill(p: Floats, square: float, variance: float, fair: int, limits: Floats, out: Floats, work: Floats) -> None:
    """Speedups of one job on one node and on several."""
    choose_batch(p, square, variance, 1, fair, limits, work)
    base = work[GOODPUT]
    for gpus in range(1, out.shape[1]):
        for several in range(2):
            choose_batch(p, square, variance, 1 + several, gpus, limits, work)
            if base <= 0.0:  # a fair share that no batch is right for: one GPU
                base = work[GOODPUT]
            out[several, gpus] = work[GOODPUT] / base if base > 0.0 else 0.0
