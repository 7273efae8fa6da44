"""What the auction leaves is handed out, so that nothing idles: to jobs that are there already, then by lot.

Hidden payments alone keep a third to a half of an offer back, so without this step devices would stand idle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gantline.systems.themis.policies.bids import Nodes, Offer, asked_size, placements, sizes_of
from gantline.systems.themis.policies.standing import Standing


@dataclass
class Leftovers:
    """Devices while they are handed out: which job has which, and what is left on each node."""

    before: dict[int, tuple[int, ...]]  # job -> devices that it holds until now
    node: dict[int, int]  # device -> node
    left: dict[int, list[int]]  # node -> devices that are not given to a job
    given: dict[int, list[int]] = field(default_factory=dict)
    given_on: dict[int, Nodes] = field(default_factory=dict)  # job -> how many it was given on each node

    @cached_property
    def _sits(self) -> dict[int, int]:
        """Device -> the job that holds it."""
        return {device: job for job, devices in self.before.items() for device in devices}

    @cached_property
    def sits_on(self) -> dict[int, Nodes]:
        """Job -> how many devices it holds on each node until now."""
        return {job: self.where(devices) for job, devices in self.before.items()}

    def room(self) -> Nodes:
        """How many are left on each node."""
        return {node: len(devices) for node, devices in self.left.items()}

    def give(self, job: int, nodes: Nodes) -> None:
        """So many devices on each node: its own first, then those that no job holds, then any."""
        sits, given, on = self._sits, self.given.setdefault(job, []), self.given_on.setdefault(job, {})
        for node, count in nodes.items():
            left = self.left[node]
            on[node] = on.get(node, 0) + count
            if count == len(left):
                given += left
                left.clear()
                continue
            mine = [device for device in left if sits.get(device) == job]
            others = [device for device in left if device not in sits], [device for device in left if sits.get(device, job) != job]
            order = [*mine, *others[0], *others[1]]
            given += order[:count]
            self.left[node] = sorted(order[count:])

    def where(self, devices: tuple[int, ...] | list[int]) -> Nodes:
        """How many of these are on each node."""
        found: Nodes = {}
        for device in devices:
            node = self.node[device]
            found[node] = found.get(node, 0) + 1
        return found


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
        most = asked_size(standing, job)
        for size in sorted((size for size in sizes_of(standing, job) if size <= min(most, free)), reverse=True):
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
    for size in [size for size in sizes_of(standing, job) if size > have]:
        here = table.given_on[job]
        missing, more = size - sum(here.values()), {}
        for node in sorted(here, key=lambda node: -len(table.left.get(node, ()))):
            more[node] = min(len(table.left.get(node, ())), missing)
            missing -= more[node]
        wider = {node: count + more[node] for node, count in here.items()}
        if missing or standing.rate(job, wider) <= standing.rate(job, here):
            return
        table.give(job, {node: count for node, count in more.items() if count})
