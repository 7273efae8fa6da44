"""What the auction leaves is handed out, so that nothing idles: to jobs that are there already, then by lot.

Hidden payments alone keep a third to a half of an offer back, so without this step devices would stand idle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from gantline.core.phases import PENDING
from gantline.policies.elastic.pools import Pool, rooms
from gantline.systems.themis.policies.bids import Nodes, Offer, placements
from gantline.systems.themis.policies.standing import Standing


@dataclass
class Leftovers:
    """Devices while they are handed out: which job has which, and what is left on each node."""

    before: dict[int, tuple[int, ...]]  # job -> devices that it holds until now
    sits_on: dict[int, Nodes]  # job -> how many of these are on each node
    sits: list[int]  # device -> the job that holds it; -1: none
    left: dict[int, list[int]]  # node -> devices that are not given to a job
    given: dict[int, list[int]] = field(default_factory=dict)
    given_on: dict[int, Nodes] = field(default_factory=dict)  # job -> how many it was given on each node

    @staticmethod
    def of(pool: Pool) -> Leftovers:
        """The devices of a pool, none of them given yet."""
        jobs, cluster, left = pool.snapshot.jobs, pool.snapshot.cluster, rooms(pool)
        there = np.flatnonzero(pool.of(jobs.phase) != PENDING)
        held = [(k, devices) for k, devices in zip(there.tolist(), map(jobs.devices, pool.jobs[there].tolist())) if devices]
        shared, sits = np.zeros(len(cluster.device_node), dtype=bool), np.full(len(cluster.device_node), -1)
        shared[list(chain.from_iterable(left.values()))] = True
        before, sits_on = dict[int, tuple[int, ...]](), dict[int, Nodes]()
        if held:
            count = [len(devices) for _, devices in held]
            first, device = np.cumsum([0, *count[:-1]]), np.fromiter(chain.from_iterable(devices for _, devices in held), dtype=np.int64)
            whole, node = np.logical_and.reduceat(shared[device], first), cluster.device_node[device]
            sits[device] = np.repeat(np.where(whole, [k for k, _ in held], -1), count)
            lowest, highest = np.minimum.reduceat(node, first).tolist(), np.maximum.reduceat(node, first).tolist()
            for (k, devices), all_shared, low, high, begin in zip(held, whole.tolist(), lowest, highest, first.tolist()):
                if all_shared:
                    before[k] = devices
                    sits_on[k] = {low: len(devices)} if low == high else Counter(node[begin : begin + len(devices)].tolist())
        return Leftovers(before, sits_on, sits.tolist(), left)

    def renew(self, jobs: list[int]) -> None:
        """Let these jobs have what they hold."""
        self.given |= {job: list(self.before[job]) for job in jobs}
        self.given_on |= {job: dict(self.sits_on[job]) for job in jobs}
        gone = set(chain.from_iterable(self.before[job] for job in jobs))
        self.left = {node: [device for device in devices if device not in gone] for node, devices in self.left.items()}

    def room(self) -> Nodes:
        """How many are left on each node."""
        return {node: len(devices) for node, devices in self.left.items()}

    def give(self, job: int, nodes: Nodes) -> None:
        """So many devices on each node: its own first, then those that no job holds, then any."""
        sits, given, on = self.sits, self.given.setdefault(job, []), self.given_on.setdefault(job, {})
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
    for job in sorted(table.given, key=lambda job: -standing.rho(job, standing.rate(job, table.given_on[job]))):
        if any(table.left[node] for node in table.given_on[job]):  # else there is no room to grow into
            _grow(table, standing, job)
    rest = [job for job in waiting if job not in table.given]
    room = {node: count for node, count in table.room().items() if count}
    free = sum(room.values())
    for place in rng.permutation(len(rest)).tolist():
        job = rest[place]
        most = standing.asked_size(job)
        for size in sorted((size for size in standing.sizes(job) if size <= min(most, free)), reverse=True):
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
