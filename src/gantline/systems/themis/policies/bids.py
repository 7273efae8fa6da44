"""Bid tables: what bundles of devices are worth to an app, by tier of placement.

A bundle is so many devices on each of some machines. Tables stay small because they are built on tiers: one machine, machines of one
rack, any machines. Where many machines would do alike, bidders are pointed to different ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gantline.systems.themis.policies.auction import Bid
from gantline.systems.themis.policies.standing import Standing

Nodes = dict[int, int]  # node -> devices there
Bundle = dict[int, Nodes]  # job of the pool -> its devices

_MACHINES = 3  # single machines that a bid names for one size
_SIZES = 6  # sizes that a bid names for one job


class RoomyMachines(NamedTuple):
    """Machines that hold a size by themselves, fullest first: without a move, and where a job is placed."""

    idle: list[int]
    taken: list[int]

    @staticmethod
    def of(size: int, left: Nodes, idle: Nodes) -> RoomyMachines:
        fits = sorted([(count, node) for node, count in left.items() if count >= size])
        return RoomyMachines([node for _, node in fits if idle[node] >= size], [node for _, node in fits if idle[node] < size])


@dataclass(frozen=True)
class Offer:
    """What is auctioned: devices per node, those of them that no job holds, and which job holds which."""

    devices: Nodes
    idle: Nodes
    own: dict[int, Nodes]  # job -> where it has been until now
    rack: list[int]  # of every node of the cluster
    _machines: dict[int, RoomyMachines] = field(default_factory=dict, compare=False)  # by size, found once for all bidders

    def machines(self, size: int, left: Nodes) -> RoomyMachines:
        """Machines with so many devices left."""
        if left is not self.devices:
            return RoomyMachines.of(size, left, self.idle)
        if size not in self._machines:
            self._machines[size] = RoomyMachines.of(size, left, self.idle)
        return self._machines[size]

    @cached_property
    def column(self) -> Nodes:
        """Node -> its column in tables of bids."""
        return {node: k for k, node in enumerate(self.devices)}

    @cached_property
    def _racks(self) -> dict[int, int]:
        return self._count_racks(self.devices)

    @cached_property
    def _fullest(self) -> dict[int | None, list[int]]:
        """Nodes of each rack, and of all (None), those with most devices first."""
        found: dict[int | None, list[int]] = {None: _by_room(self.devices)}
        for node in found[None]:
            found.setdefault(self.rack[node], []).append(node)
        return found

    def fullest(self, left: Nodes, rack: int | None) -> list[int]:
        """Nodes of a rack, or of all, those with most devices left first."""
        if left is self.devices:
            return self._fullest[rack]
        return _by_room({node: count for node, count in left.items() if rack is None or self.rack[node] == rack})

    def racks(self, left: Nodes) -> dict[int, int]:
        """Devices left in each rack."""
        return self._racks if left is self.devices else self._count_racks(left)

    def _count_racks(self, left: Nodes) -> dict[int, int]:
        found: dict[int, int] = {}
        for node, count in left.items():
            found[self.rack[node]] = found.get(self.rack[node], 0) + count
        return found


@dataclass(frozen=True)
class Table:
    """A bid with the bundle behind each row."""

    bid: Bid
    bundles: list[Bundle]


def app_rho(standing: Standing, members: list[int], rates: dict[int, float], of_app: str) -> float:
    """The rho of an app whose jobs run at these speeds: the mean over its jobs, or that of the best one."""
    each = [standing.rho(job, rates.get(job, 0.0)) for job in members]
    return min(each) if of_app == "best" else sum(each) / len(each)


def bid_table(
    standing: Standing, members: list[int], wanting: list[int], rates: dict[int, float], offer: Offer, turn: int, of_app: str
) -> Table:
    """The table of an app whose jobs `wanting` have no lease; `rates` are the speeds of those that have one."""
    rates = {job: rates[job] for job in members if job in rates}
    bundles = list(_bundles(standing, wanting, offer, turn))
    if len(members) == 1:  # as most are: its rho is that of the job
        (job,) = members
        values = [1.0 / standing.rho(job, standing.rate(job, bundle[job])) for bundle in bundles]
    else:
        speeds = [rates | {job: standing.rate(job, nodes) for job, nodes in bundle.items()} for bundle in bundles]
        values = [1.0 / app_rho(standing, members, each, of_app) for each in speeds]
    column, width = offer.column, len(offer.devices)
    cell = [k * width + column[node] for k, bundle in enumerate(bundles) for nodes in bundle.values() for node in nodes]
    count = [count for bundle in bundles for nodes in bundle.values() for count in nodes.values()]
    use = np.bincount(cell, count, len(bundles) * width).astype(np.int64) if cell else np.zeros(0, dtype=np.int64)
    return Table(Bid(1.0 / app_rho(standing, members, rates, of_app), use.reshape(-1, width), np.array(values)), bundles)


def _bundles(standing: Standing, wanting: list[int], offer: Offer, turn: int) -> Iterator[Bundle]:
    if len(wanting) == 1:
        job = wanting[0]
        for size in _some_sizes(standing.sizes(job), standing.asked_size(job)):
            for nodes in placements(size, offer.devices, offer, job, turn):
                yield {job: nodes}
        return
    left: Nodes = dict(offer.devices)
    bundle: Bundle = {}
    for job in sorted(wanting, key=lambda job: (standing.left[job], job)):  # the shortest of an app first, each at the size it asks for
        nodes = next(placements(standing.asked_size(job), left, offer, job, turn), {})
        if nodes:
            bundle = bundle | {job: nodes}
            left = {node: count - nodes.get(node, 0) for node, count in left.items()}
            yield bundle


def _some_sizes(sizes: list[int], asked: int) -> list[int]:
    """The size asked for, the least and the most, and powers of two between: a few."""
    if len(sizes) <= _SIZES:
        return sizes
    wanted = {sizes[0], sizes[-1], asked}
    even = [size for size in sizes if size & (size - 1) == 0 and size not in wanted]
    return sorted(wanted | set(even[-(_SIZES - len(wanted)) :]))


def placements(size: int, left: Nodes, offer: Offer, job: int, turn: int) -> Iterator[Nodes]:
    """Where so many devices can be had, nearest together first: a few single machines, machines of one rack, any machines."""
    if size <= 0:
        return
    own = offer.own.get(job, {})
    idle, taken = offer.machines(size, left)
    some = bool(idle or taken)
    mine: list[int] = []
    if own:
        mine = [node for node, count in left.items() if node in own and count >= size]
        idle, taken = [node for node in idle if node not in own], [node for node in taken if node not in own]
    for node in [*mine, *_from(idle, turn), *_from(taken, turn)][:_MACHINES]:
        yield {node: size}
    if size == 1 or (some and len(left) == 1):
        return
    racks = offer.racks(left)
    for rack in sorted((rack for rack, count in racks.items() if count >= size), key=lambda rack: (racks[rack], rack))[:1]:
        yield _spread(size, left, offer.fullest(left, rack), own)
        return
    if sum(racks.values()) >= size:
        yield _spread(size, left, offer.fullest(left, None), own)


def _from(listed: list[int], turn: int) -> list[int]:
    """The first nodes of a list that starts at another position for every bidder."""
    start = turn % len(listed) if listed else 0
    return [*listed[start : start + _MACHINES], *listed[: min(start, _MACHINES)]]


def _by_room(left: Nodes) -> list[int]:
    return sorted(left, key=lambda node: (-left[node], node))


def _spread(size: int, left: Nodes, fullest: list[int], own: Nodes) -> Nodes:
    """As few machines as possible: full ones first, own ones of those that are as full."""
    found: Nodes = {}
    for node in _own_first(fullest, left, own) if own else fullest:
        taken = min(left[node], size)
        if taken <= 0:
            break  # all placed, or nothing is left anywhere
        found[node] = taken
        size -= taken
    return found


def _own_first(fullest: list[int], left: Nodes, own: Nodes) -> Iterator[int]:
    """Of machines that are as full, own ones first."""
    for _, alike in groupby(fullest, key=left.__getitem__):
        nodes = list(alike)
        yield from (node for node in nodes if node in own)
        yield from (node for node in nodes if node not in own)
