"""Auctions of devices (Themis, NSDI 2020, section 4): a fair split with hidden payments, and the tables that apps bid with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.solvers.choices_without import best_without, less_without
from gantline.models.solvers.multiple_choice import solve_choices
from gantline.systems.themis.policies.standing import Standing

# One auction: a proportionally fair split of the offer, and hidden payments that make the truth the best bid.
#
# Partial allocation (Cole, Gkatzelis, Goel, EC 2013), as Themis uses it (Mahajan et al., NSDI 2020, section 4): the
# split has the greatest product of values. A bidder keeps only a part of what it won there: the product of the others'
# values in the split, over what that product would be without the bidder. What a bidder gets is then worth the product
# of all values over a number that it has no part in, so no other bid can get it more than the true one.


_EQUAL = 1e-9  # gains of logarithms below this are none


@dataclass(frozen=True)
class Bid:
    """The worth of bundles that one bidder declares: at most one row can be won."""

    nothing: float  # value of winning none, above zero
    use: Ints  # rows x machines: devices on each
    value: Floats  # per row, above zero

    @property
    def gain(self) -> Floats:
        """Per row: how much its logarithm is above that of nothing."""
        found: Floats = np.log(self.value) - np.log(self.nothing)
        return found


@dataclass(frozen=True)
class AuctionOutcome:
    """Per bidder: the row of the fair split (-1: none), and the part of it that is kept after the hidden payment."""

    row: Ints
    keep: Floats


class _SplitProgram(NamedTuple):
    """The rows that are worth having and fit, as columns of a program with a row per bidder and one per machine."""

    bidder: Ints
    row: Ints  # of the bidder's table
    need: Floats  # columns x machines that a bid names
    gain: Floats
    free: Floats

    @staticmethod
    def of(bids: Sequence[Bid], offer: Ints) -> _SplitProgram:
        use = np.concatenate([np.zeros((0, len(offer)), dtype=np.int64), *(bid.use.reshape(-1, len(offer)) for bid in bids)])
        gain = np.concatenate([np.zeros(0), *(bid.gain for bid in bids)])
        bidder = np.repeat(np.arange(len(bids)), [len(bid.value) for bid in bids])
        row = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(len(bid.value)) for bid in bids)])
        worth = np.flatnonzero((gain > _EQUAL) & (use <= offer).all(axis=1))
        machines = np.flatnonzero(use[worth].any(axis=0))
        need = use[worth][:, machines].astype(np.float64)
        return _SplitProgram(bidder[worth], row[worth], need, gain[worth], offer[machines].astype(np.float64))

    def split(self, bidders: int) -> Ints:
        """Per bidder: the column that it wins, -1: none."""
        found = np.full(bidders, -1, dtype=np.int64)
        if len(self.gain):
            names, number = np.unique(self.bidder, return_inverse=True)
            won = solve_choices(number, self.need, self.gain, self.free, len(names)).columns
            found[self.bidder[won]] = won
        return found


class _Split(NamedTuple):
    """The fair split, and which of its winners stand in the way of others."""

    program: _SplitProgram
    column: Ints  # per bidder
    gain: Floats
    missed: list[int]

    @staticmethod
    def of(bids: Sequence[Bid], offer: Ints) -> _Split:
        program = _SplitProgram.of(bids, offer)
        column, gain, most = program.split(len(bids)), np.zeros(len(bids)), np.zeros(len(bids))
        gain[column >= 0] = program.gain[column[column >= 0]]
        np.maximum.at(most, program.bidder, program.gain)
        lacks = most > gain + _EQUAL  # bidders that would have more without the others
        return _Split(program, column, gain, [winner for winner in np.flatnonzero(column >= 0).tolist() if lacks.sum() > lacks[winner]])

    @property
    def row(self) -> Ints:
        """Per bidder: the row of its table, -1: none."""
        return np.where(self.column >= 0, np.append(self.program.row, -1)[self.column], -1)

    @property
    def of_others(self) -> Floats:
        """What the others of each winner that is missed gain."""
        others: Floats = self.gain.sum() - self.gain[self.missed]
        return others


def fair_split(bids: Sequence[Bid], offer: Ints) -> Ints:
    """The rows with the greatest product of values within the offer, exactly; -1: nothing."""
    return _Split.of(bids, offer).row


def partial_allocation(bids: Sequence[Bid], offer: Ints) -> AuctionOutcome:
    """The fair split of the offer, and what each winner keeps of its row."""
    split, keep = _Split.of(bids, offer), np.ones(len(bids))
    bidder, _, need, gain, free = split.program
    possible = best_without(bidder, need, gain, free, len(bids), split.missed)
    keep[split.missed] = np.minimum(np.exp(split.of_others - possible), 1.0)
    return AuctionOutcome(split.row, keep)


def allocation_by_lot(bids: Sequence[Bid], offer: Ints, lots: Floats) -> AuctionOutcome:
    """The fair split of the offer, of which a winner keeps all if its lot, from 0 to 1, is below the part that it would keep; else nothing.

    A lot asks for less than the part itself: whether the others would have gained less without the winner than the lot allows.
    """
    split, keep = _Split.of(bids, offer), np.ones(len(bids))
    bidder, _, need, gain, free = split.program
    limits = split.of_others - np.log(np.maximum(lots[split.missed], np.finfo(np.float64).tiny))
    keep[split.missed] = less_without(bidder, need, gain, free, len(bids), split.missed, limits.tolist())
    return AuctionOutcome(split.row, keep)


# Bid tables: what bundles of devices are worth to an app, by tier of placement.
#
# A bundle is so many devices on each of some machines. Tables stay small because they are built on tiers: one machine, machines of one
# rack, any machines. Where many machines would do alike, bidders are pointed to different ones.

Nodes = dict[int, int]  # node -> devices there
Bundle = dict[int, Nodes]  # job of the pool -> its devices

_MACHINES = 3  # single machines that a bid names for one size
_SIZES = 6  # sizes that a bid names for one job


@dataclass(frozen=True)
class Offer:
    """What is auctioned: devices per node, those of them that no job holds, and which job holds which."""

    devices: Nodes
    idle: Nodes
    own: dict[int, Nodes]  # job -> where it has been until now
    rack: list[int]  # of every node of the cluster


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
    column, width = {node: k for k, node in enumerate(offer.devices)}, len(offer.devices)
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
    fits = [node for count, node in sorted((count, node) for node, count in left.items() if count >= size)]
    mine = [node for node in left if node in own and left[node] >= size]
    idle = [node for node in fits if offer.idle[node] >= size and node not in own]
    taken = [node for node in fits if offer.idle[node] < size and node not in own]
    for node in [*mine, *_from(idle, turn), *_from(taken, turn)][:_MACHINES]:
        yield {node: size}
    if size == 1 or (fits and len(left) == 1):
        return
    racks: Counter[int] = Counter()
    for node, count in left.items():
        racks[offer.rack[node]] += count
    rack = min((rack for rack, count in racks.items() if count >= size), key=lambda rack: (racks[rack], rack), default=None)
    if sum(racks.values()) >= size:
        near = left if rack is None else {node: count for node, count in left.items() if offer.rack[node] == rack}
        yield _spread(size, near, sorted(near, key=lambda node: (-near[node], node)), own)


def _from(listed: list[int], turn: int) -> list[int]:
    """The first nodes of a list that starts at another position for every bidder."""
    start = turn % len(listed) if listed else 0
    return [*listed[start : start + _MACHINES], *listed[: min(start, _MACHINES)]]


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
