"""What the auction leaves is handed out, so that nothing idles: to jobs that are there already, then by lot.

Hidden payments alone keep a third to a half of an offer back, so without this step devices would stand idle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from gantline.core.phases import PENDING
from gantline.policies.elastic.pools import Pool, by_node, may_share
from gantline.systems.themis.policies.bids import Nodes, Offer, placements
from gantline.systems.themis.policies.standing import Standing


@dataclass
class Leftovers:
    """Devices while they are handed out: which job has which, and what is left on each node."""

    before: dict[int, tuple[int, ...]]  # job -> devices that it holds until now
    sits_on: dict[int, Nodes]  # job -> how many of these are on each node
    sits: list[int]  # device -> the job that holds it; -1: none
    left: dict[int, list[int]]  # node -> devices that are not given to a job; a node without any may be missing
    given: dict[int, Sequence[int]]
    given_on: dict[int, Nodes]  # job -> how many it was given on each node

    @staticmethod
    def of(pool: Pool, leases: Container[str]) -> Leftovers:
        """The devices of a pool; jobs with a lease, named by their rows, have what they hold, and no other is given yet."""
        jobs, cluster, left = pool.snapshot.jobs, pool.snapshot.cluster, may_share(pool)
        there = np.flatnonzero(pool.of(jobs.phase) != PENDING)
        holds = {k: devices for k, devices in zip(there.tolist(), map(jobs.devices, pool.jobs[there].tolist())) if devices}
        job = np.repeat(list(holds), list(map(len, holds.values()))).astype(np.int64)
        device = np.fromiter(chain.from_iterable(holds.values()), dtype=np.int64, count=len(job))
        outside = set(job[~left[device]].tolist())  # their devices are not all to be shared
        before = {k: devices for k, devices in holds.items() if k not in outside} if outside else holds
        sits, node = np.full(len(left), -1), cluster.device_node[device]
        sits[device] = np.where(np.isin(job, list(outside)), -1, job) if outside else job
        sits_on: dict[int, Nodes] = {k: {} for k in before}
        ends = np.append(np.flatnonzero((job[1:] != job[:-1]) | (node[1:] != node[:-1])) + 1, len(job)) if len(job) else job
        begins = np.append(0, ends[:-1]) if len(job) else job  # of devices side by side on a node
        for k, on, count in zip(job[begins].tolist(), node[begins].tolist(), (ends - begins).tolist()):
            if k in sits_on:
                sits_on[k][on] = sits_on[k].get(on, 0) + count
        rows = map(str, pool.of(jobs.rows)[list(before)].tolist()) if before and leases else ()
        given: dict[int, Sequence[int]] = {k: devices for (k, devices), row in zip(before.items(), rows) if row in leases}
        leased = np.zeros(len(pool), dtype=np.bool_)
        leased[list(given)] = True
        left[device[leased[job]]] = False
        return Leftovers(before, sits_on, sits.tolist(), by_node(pool, np.flatnonzero(left)), given, {k: sits_on[k] for k in given})

    def room(self) -> Nodes:
        """How many are left on each node."""
        return {node: len(devices) for node, devices in self.left.items()}

    def give(self, job: int, nodes: Nodes) -> None:
        """So many devices on each node: its own first, then those that no job holds, then any."""
        sits, given, on = self.sits, list(self.given.get(job, ())), dict(self.given_on.get(job, {}))
        self.given[job], self.given_on[job] = given, on
        for node, count in nodes.items():
            left = self.left[node]
            on[node] = on.get(node, 0) + count
            if count == len(left):
                given += left
                left.clear()
                continue
            order = sorted(left, key=lambda device: (sits[device] != job) + (sits[device] not in (job, -1)))
            given += order[:count]
            self.left[node] = sorted(order[count:])


def hand_out(table: Leftovers, standing: Standing, offer: Offer, rng: np.random.Generator) -> None:
    """Jobs whose lease is over stay where they are; jobs grow on their own machines; the rest is given by lot."""
    waiting = [job for job in range(len(standing.pool)) if job not in table.given]
    room = table.room()
    for job in [job for job in waiting if job in table.before]:
        nodes = table.sits_on[job]
        if all(room.get(node, 0) >= count for node, count in nodes.items()):
            table.give(job, nodes)
            room |= {node: len(table.left[node]) for node in nodes}
    beside = {node for node, devices in table.left.items() if devices}
    growing = [job for job in table.given if not beside.isdisjoint(table.given_on[job])]  # the others have no room to grow into
    for job in sorted(growing, key=lambda job: -standing.rho(job, standing.rate(job, table.given_on[job]))):
        _grow(table, standing, job)
    rest = [job for job in waiting if job not in table.given]
    room = {node: count for node, count in table.room().items() if count}
    free = sum(room.values())
    for place in rng.permutation(len(rest)).tolist():
        job = rest[place]
        sizes = standing.sizes(job)
        for size in reversed(sizes[: bisect_right(sizes, min(standing.asked_size(job), free))]):
            nodes = next(placements(size, room, offer, job, 0), {})
            if nodes:
                table.give(job, nodes)
                free -= size
                for node in nodes:
                    room[node] = len(table.left[node])
                    if not room[node]:
                        del room[node]
                break


def _grow(table: Leftovers, standing: Standing, job: int) -> None:
    """To the next sizes, while the machines that the job is on have room."""
    have = len(table.given[job])
    for size in [size for size in standing.sizes(job) if size > have]:
        here = table.given_on[job]
        missing, more = size - sum(here.values()), {}
        for node in sorted(here, key=lambda node: -len(table.left.get(node, ()))):
            more[node] = min(len(table.left.get(node, ())), missing)
            missing -= more[node]
        wider = {node: count + more[node] for node, count in here.items()}
        if missing or standing.rate(job, wider) <= standing.rate(job, here):
            return
        table.give(job, {node: count for node, count in more.items() if count})
