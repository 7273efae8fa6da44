"""Parameter servers and workers: what is believed of jobs, how many of both each gets, and on which nodes (Optimus, EuroSys 2018)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.snapshot import Snapshot
from gantline.models.convergence import epochs_left
from gantline.models.parameter_servers import ServerSpeed, fit_speed
from gantline.policies.elastic.pools import Pool

# What Optimus believes of a job: its speed by servers and workers, and the time that is left of it, from its measurements.


@dataclass(frozen=True)
class Belief:
    """A fitted speed, what was measured itself (which counts for more), and epochs to go in steps."""

    left: float
    fitted: ServerSpeed
    measured: dict[tuple[int, int], float]

    def time(self, servers: int, workers: int) -> float:
        """How long it would take to the end, up to a factor of the job."""
        return self.left / (self.measured.get((servers, workers)) or self.fitted.speed(servers, workers))


def slow_nodes(snapshot: Snapshot, rows: list[str], before: dict[str, list[int]]) -> dict[str, list[int]]:
    """Nodes that jobs shun, by row: those before, and those where a worker has less than half the median speed of its job's workers."""
    learned, found = snapshot.learned or {}, dict(before)
    for row, job in zip(rows, snapshot.jobs.ids):
        workers = learned.get(job, {}).get("workers", [])
        if len(workers) > 1:
            middle = float(np.median([speed for _, speed in workers]))
            slow = {int(node) for node, speed in workers if speed < 0.5 * middle}
            found |= {row: sorted(slow | set(found.get(row, ())))} if slow else {}
    return found


def read_beliefs(pool: Pool) -> list[Belief]:
    """One per job of the pool."""
    snapshot = pool.snapshot
    model: Any = snapshot.performance
    learned, ids, done = snapshot.learned or {}, snapshot.jobs.ids, snapshot.jobs.done
    found = []
    for job in pool.jobs.tolist():
        declared = model.declared(ids[job])
        seen = learned.get(ids[job], {"speeds": [], "losses": []})
        fitted = fit_speed(declared.mode, declared.batch, [*model.profiled(ids[job]), *seen["speeds"]])
        epochs = epochs_left(seen["losses"], declared.drop, model.progress(ids[job], float(done[job])))
        found.append(Belief(epochs * declared.steps, fitted, {(int(p), int(w)): speed for p, w, speed in seen["speeds"]}))
    return found


# How many parameter servers and workers each job gets: by marginal gain per resource (Optimus), or by equal dominant shares (DRF).

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


# Which nodes: the fewest, with equal numbers of servers and of workers on each (Optimus, EuroSys 2018, section 4.2, theorem 1).
#
# Beside it the placement of its baseline: task by task on the node with most room, as Kubernetes balances load by default.


class TaskPlacement(NamedTuple):
    """The node of each server and each worker."""

    type: int
    servers: list[int]
    workers: list[int]

    @property
    def task(self) -> JointTask:
        return JointTask(len(self.servers), len(self.workers))


class NodeRoom:
    """What is free on the nodes of one type while places are dealt out: GPUs, CPUs, GB per node."""

    def __init__(self, nodes: Ints, free: Floats) -> None:
        self.nodes, self.free = nodes, free
        self.place = {int(node): place for place, node in enumerate(nodes)}

    def take(self, placed: TaskPlacement, demand: JointDemand) -> bool:
        """These places, or none of them."""
        need = np.zeros_like(self.free)
        for amounts, where in zip(demand.parts, (placed.servers, placed.workers)):
            for node in where:
                if node not in self.place:
                    return False
                need[self.place[node]] += amounts
        if (need > self.free + 1e-9).any():
            return False
        self.free -= need
        return True


def free_room(pool: Pool) -> NodeRoom:
    """The nodes of the pool's type, with everything that those of the pool hold counted as free."""
    cluster = pool.snapshot.cluster
    nodes = np.flatnonzero((cluster.node_type == pool.kind) & cluster.node_up)
    listed = [cluster.description.nodes[node] for node in nodes.tolist()]
    free = np.array([[node.gpus, node.cpus, node.memory] for node in listed], dtype=np.float64).reshape(-1, 3)
    place = {int(node): at for at, node in enumerate(nodes)}
    for job in np.setdiff1d(np.arange(len(pool.snapshot.jobs)), pool.jobs).tolist():  # locked or in flight: it stays
        for device in pool.snapshot.jobs.devices(job):
            at = place.get(int(cluster.device_node[device]))
            if at is not None:
                free[at, 0] -= 1
    return NodeRoom(nodes, free)


def deal(task: JointTask, demand: JointDemand, room: NodeRoom, kind: int, shunned: Collection[int] = ()) -> TaskPlacement | None:
    """Places on the fewest nodes, those with most CPUs (then GPUs) free first, dealt round; else as many as fit; None: nothing.

    Uses `shunned` nodes only where no others have room.
    """
    if len(shunned):
        elsewhere = NodeRoom(room.nodes, np.where(np.isin(room.nodes, list(shunned))[:, None], 0.0, room.free))
        found = deal(task, demand, elsewhere, kind)
        if found is not None and found.task == task and room.take(found, demand):
            return found
    order = np.lexsort((-room.free[:, 0], -room.free[:, 1]))
    server, worker = np.array(demand.server), np.array(demand.worker)
    for count in range(1, len(order) + 1):
        chosen = order[:count]
        number = np.arange(count)
        servers = task.servers // count + (number < task.servers % count)
        workers = task.workers // count + (number >= count - task.workers % count)  # the odd ones from the other end
        need = servers[:, None] * server + workers[:, None] * worker
        if (need <= room.free[chosen] + 1e-9).all():
            room.free[chosen] -= need
            return TaskPlacement(kind, np.repeat(room.nodes[chosen], servers).tolist(), np.repeat(room.nodes[chosen], workers).tolist())
        if count >= sum(task):
            break
    return balance(task, demand, room, kind, first=True)


def balance(task: JointTask, demand: JointDemand, room: NodeRoom, kind: int, *, first: bool = False) -> TaskPlacement | None:
    """Workers and servers in turn, each on the node with most CPUs (then GPUs) free, or the first with room; a job needs one of both."""
    before, placed = room.free.copy(), TaskPlacement(kind, [], [])
    for turn in range(max(task)):
        for amounts, where, wanted in ((demand.worker, placed.workers, task.workers), (demand.server, placed.servers, task.servers)):
            fits = np.flatnonzero((room.free + 1e-9 >= np.array(amounts)).all(axis=1)) if turn < wanted else np.zeros(0, dtype=np.int64)
            if len(fits):
                best = int(fits[0 if first else np.lexsort((fits, -room.free[fits, 0], -room.free[fits, 1]))[0]])
                room.free[best] -= amounts
                where.append(int(room.nodes[best]))
    if placed.servers and placed.workers:
        return placed
    room.free[:] = before
    return None
