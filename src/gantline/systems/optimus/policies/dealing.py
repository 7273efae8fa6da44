"""Which nodes: the fewest, with equal numbers of servers and of workers on each (Optimus, EuroSys 2018, section 4.2, theorem 1).

Beside it the placement of its baseline: task by task on the node with most room, as Kubernetes balances load by default.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.policies.elastic.pools import Pool
from gantline.systems.optimus.policies.jointly import JointDemand, JointTask


class Seats(NamedTuple):
    """The node of each server and each worker."""

    type: int
    servers: list[int]
    workers: list[int]

    @property
    def task(self) -> JointTask:
        return JointTask(len(self.servers), len(self.workers))


class Room:
    """What is free on the nodes of one type while seats are dealt out: GPUs, CPUs, GB per node."""

    def __init__(self, nodes: Ints, free: Floats) -> None:
        self.nodes, self.free = nodes, free
        self.place = {int(node): place for place, node in enumerate(nodes)}

    def take(self, seats: Seats, demand: JointDemand) -> bool:
        """These seats, or none of them."""
        need = np.zeros_like(self.free)
        for amounts, where in zip(demand.parts, (seats.servers, seats.workers)):
            for node in where:
                if node not in self.place:
                    return False
                need[self.place[node]] += amounts
        if (need > self.free + 1e-9).any():
            return False
        self.free -= need
        return True


def free_room(pool: Pool) -> Room:
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
    return Room(nodes, free)


def deal(task: JointTask, demand: JointDemand, room: Room, kind: int, shunned: Collection[int] = ()) -> Seats | None:
    """Seats on the fewest nodes, those with most CPUs (then GPUs) free first, dealt round; else as many as fit; None: nothing.

    Uses `shunned` nodes only where no others have room.
    """
    if len(shunned):
        elsewhere = Room(room.nodes, np.where(np.isin(room.nodes, list(shunned))[:, None], 0.0, room.free))
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
            return Seats(kind, np.repeat(room.nodes[chosen], servers).tolist(), np.repeat(room.nodes[chosen], workers).tolist())
        if count >= sum(task):
            break
    return _first_fit(task, server, worker, room, kind)


def balance(task: JointTask, demand: JointDemand, room: Room, kind: int) -> Seats | None:
    """Workers and servers in turn, each on the node with most CPUs (then GPUs) free, until one finds none; a job needs one of both."""
    before, seats = room.free.copy(), Seats(kind, [], [])
    for turn in range(max(task)):
        for amounts, where, wanted in ((demand.worker, seats.workers, task.workers), (demand.server, seats.servers, task.servers)):
            fits = np.flatnonzero((room.free + 1e-9 >= np.array(amounts)).all(axis=1)) if turn < wanted else np.zeros(0, dtype=np.int64)
            if len(fits):
                best = int(fits[np.lexsort((fits, -room.free[fits, 0], -room.free[fits, 1]))[0]])
                room.free[best] -= amounts
                where.append(int(room.nodes[best]))
    if seats.servers and seats.workers:
        return seats
    room.free[:] = before
    return None


def _first_fit(task: JointTask, server: Floats, worker: Floats, room: Room, kind: int) -> Seats | None:
    """Workers and servers in turn, each on the first node with room, until one finds none; a job needs one of both."""
    before, seats = room.free.copy(), Seats(kind, [], [])
    for turn in range(max(task)):
        for amounts, where, wanted in ((worker, seats.workers, task.workers), (server, seats.servers, task.servers)):
            fits = np.flatnonzero((room.free + 1e-9 >= amounts).all(axis=1)) if turn < wanted else np.zeros(0, dtype=np.int64)
            if len(fits):
                room.free[fits[0]] -= amounts
                where.append(int(room.nodes[fits[0]]))
    if seats.servers and seats.workers:
        return seats
    room.free[:] = before
    return None
