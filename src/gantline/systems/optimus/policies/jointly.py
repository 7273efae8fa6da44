"""How many parameter servers and workers each job gets: by marginal gain per resource (Optimus), or by equal dominant shares (DRF)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import Pool
from gantline.systems.optimus.policies.beliefs import Belief

Amounts = tuple[float, float, float]  # GPUs, CPUs, GB


class JointTask(NamedTuple):
    """Servers and workers of one job; none of both: it waits."""

    servers: int
    workers: int


@dataclass(frozen=True)
class JointDemand:
    """What a server and a worker take, and what there is of it; what the cluster does not count is not asked for."""

    server: Amounts
    worker: Amounts
    capacity: Amounts

    @property
    def parts(self) -> tuple[Amounts, Amounts]:
        return self.server, self.worker

    @staticmethod
    def of_type(snapshot: Snapshot, kind: int, gpus: float | None = None) -> JointDemand:
        """For the nodes of one type."""
        model: Any = snapshot.performance
        up, kinds = snapshot.cluster.node_up, snapshot.cluster.node_type
        nodes = [node for place, node in enumerate(snapshot.cluster.description.nodes) if up[place] and kinds[place] == kind]
        cpus, memory = sum(node.cpus for node in nodes), sum(node.memory for node in nodes)
        counted = (1.0, 1.0 if cpus > 0.0 else 0.0, 1.0 if memory > 0.0 else 0.0)
        server = (0.0, model.server_cpus * counted[1], model.server_memory * counted[2])
        worker = (1.0, model.worker_cpus * counted[1], model.worker_memory * counted[2])
        return JointDemand(server, worker, (float(sum(node.gpus for node in nodes)) if gpus is None else gpus, cpus, memory))

    @staticmethod
    def of(pool: Pool) -> JointDemand:
        return JointDemand.of_type(pool.snapshot, pool.kind, float(pool.capacity))

    def share(self, amounts: Amounts) -> float:
        """The dominant share: the largest part of anything."""
        return max((amount / have for amount, have in zip(amounts, self.capacity) if have > 0.0), default=0.0)


class _Left:
    """What has not been given out."""

    def __init__(self, demand: JointDemand) -> None:
        self.amounts = list(demand.capacity)

    def take(self, *wanted: Amounts) -> bool:
        """All of these, or none."""
        for k in range(3):
            if sum(one[k] for one in wanted) > self.amounts[k] + 1e-9:
                return False
        for k in range(3):
            self.amounts[k] -= sum(one[k] for one in wanted)
        return True


def by_gain(beliefs: Sequence[Belief], demand: JointDemand, most: Sequence[int]) -> list[JointTask]:
    """A server and a worker each in order of arrival; then whichever task saves most time per dominant share, while any saves some.

    The paper divides by the amount of the dominant resource; shares make GPUs and CPUs comparable. Where no further task of one kind fits,
    the other kind goes on; the paper stops. Ties fall to the earlier job, then to the worker.
    """
    left, found, fits = _Left(demand), [JointTask(0, 0)] * len(beliefs), [True, True]
    price = [max(demand.share(amounts), 1e-12) for amounts in demand.parts]
    offers: list[tuple[float, int, int]] = []

    def offer(job: int) -> None:
        now = beliefs[job].time(*found[job])
        saved = [(now - beliefs[job].time(*_grown(found[job], kind))) / price[kind] if fits[kind] else 0.0 for kind in (0, 1)]
        saved[1] = saved[1] if found[job].workers < most[job] else 0.0
        kind = int(saved[1] >= saved[0])
        if saved[kind] > 0.0:
            heappush(offers, (-saved[kind], job, kind))

    for job in range(len(beliefs)):
        if most[job] > 0 and left.take(*demand.parts):
            found[job] = JointTask(1, 1)
            offer(job)
    while offers:
        _, job, kind = heappop(offers)
        fits[kind] = fits[kind] and left.take(demand.parts[kind])
        if fits[kind]:
            found[job] = _grown(found[job], kind)
        offer(job)  # its next task; or the other kind of it, if this one no longer fits
    return found


def _grown(task: JointTask, kind: int) -> JointTask:
    return JointTask(task.servers + (kind == 0), task.workers + (kind == 1))


def by_share(demand: JointDemand, most: Sequence[int]) -> list[JointTask]:
    """Pairs of a server and a worker, always to the smallest dominant share, until none fits; ties fall to the earlier job."""
    left, found = _Left(demand), [JointTask(0, 0)] * len(most)
    (_, a, b), (c, d, e) = demand.parts
    pair = demand.share((c, a + d, b + e))
    waiting = [(0.0, job) for job in range(len(most)) if most[job] > 0]
    heapify(waiting)
    while waiting:
        share, job = heappop(waiting)
        if not left.take(*demand.parts):
            break
        found[job] = JointTask(found[job].servers + 1, found[job].workers + 1)
        if found[job].workers < most[job]:
            heappush(waiting, (share + pair, job))
    return found
