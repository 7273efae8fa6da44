"""Free devices as bit masks, nodes by how many they have free, and gangs as short chains of (node, devices).

One device type, at most 62 devices a node. A gang's chain survives a trial in which its devices are lent away, so that giving them back is
a comparison of masks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Node
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel


class NodeRow(Constants):
    """Rows of `node`: mask of its free devices, how many, devices in all, number of the first, gain of a trial,
    room in a trial."""

    FREE, COUNT, SIZE, FIRST, GAIN, ROOM, CHOSEN, PART = range(8)


class ChainLink(Constants):
    """Columns of `chain`: node, mask, devices, next link; of the first link: how many there are, the last of them;
    a link is a cache line."""

    NODE, MASK, HELD, NEXT, LINKS, LAST = range(6)


CHAIN_COLUMNS = 8


class Total(Constants):
    """Places of `total`: free devices in all, first spare link, devices of the largest node; the same if nodes
    differ in size, else 0; whether nodes are sought by how many they have free."""

    FREE_IN_ALL, SPARE, LARGEST, APART, SOUGHT = range(5)


MOST_DEVICES = 62  # devices of a node that a mask holds

_DE_BRUIJN = 0x03F79D71B4CB0A89
_BIT = np.zeros(64, dtype=np.int64)
for _k in range(64):
    _BIT[(((1 << _k) * _DE_BRUIJN) >> 58) & 63] = _k


class Devices(NamedTuple):
    node: Ints  # (what, node)
    by_count: Ints  # (free devices, word): bit set of the nodes with so many free; in line 0 those with any
    nodes_with: Ints  # (free devices,): how many nodes
    chain: Ints  # (link, what)
    total: Ints


def devices(NI: Ints, sought: bool) -> Devices:
    """All devices free; `sought`: nodes are looked up by how many devices they have free."""
    n, largest = NI.shape[1], int(NI[Node.GPUS].max(initial=0))
    node = np.zeros((len(NodeRow), n), dtype=np.int64)
    node[NodeRow.SIZE], node[NodeRow.FIRST], node[NodeRow.COUNT] = NI[Node.GPUS], NI[Node.FIRST], NI[Node.GPUS]
    node[NodeRow.FREE] = (1 << NI[Node.GPUS]) - 1
    by_count = np.zeros((largest + 1, (n + 63) // 64), dtype=np.uint64)
    for k in np.flatnonzero(NI[Node.GPUS]).tolist():
        by_count[NI[Node.GPUS, k], k // 64] |= np.uint64(1 << (k % 64))
        by_count[0, k // 64] |= np.uint64(1 << (k % 64))
    links = 2 * int(NI[Node.GPUS].sum()) + 2
    chain = np.zeros((links, CHAIN_COLUMNS), dtype=np.int64)
    chain[:, ChainLink.NEXT] = np.arange(1, links + 1)
    differ = bool(((NI[Node.GPUS] > 0) & (NI[Node.GPUS] < largest)).any())
    total = np.array([NI[Node.GPUS].sum(), 0, largest, largest if differ else 0, int(sought)], dtype=np.int64)
    return Devices(node, by_count.view(np.int64), np.bincount(NI[Node.GPUS], minlength=largest + 1), chain, total)


@kernel
def lowest(mask: int) -> int:
    """The number of the lowest bit that is set."""
    return int(_BIT[(((mask & -mask) * _DE_BRUIJN) >> 58) & 63])


@kernel
def _count(d: Devices, node: int, now: int) -> None:
    """The node has so many free devices from now on."""
    before = d.node[NodeRow.COUNT, node]
    word, bit = node >> 6, 1 << (node & 63)
    d.node[NodeRow.COUNT, node] = now
    d.total[Total.FREE_IN_ALL] += now - before
    if before == 0 or now == 0:
        d.by_count[0, word] ^= bit
    if d.total[Total.SOUGHT] == 1:
        d.nodes_with[before] -= 1
        d.nodes_with[now] += 1
        if before > 0:
            d.by_count[before, word] ^= bit
        if now > 0:
            d.by_count[now, word] ^= bit


@kernel
def _link(d: Devices, last: int, node: int, count: int) -> int:
    """Take the lowest `count` free devices of the node as one more link behind `last`."""
    at = d.total[Total.SPARE]
    d.total[Total.SPARE] = d.chain[at, ChainLink.NEXT]
    free = d.node[NodeRow.FREE, node]
    mask = 0
    if count == d.node[NodeRow.COUNT, node]:
        mask = free
    else:
        left = free
        for _ in range(count):
            left &= left - 1
        mask = free ^ left
    d.node[NodeRow.FREE, node] = free ^ mask
    _count(d, node, d.node[NodeRow.COUNT, node] - count)
    d.chain[at, ChainLink.NODE] = node
    d.chain[at, ChainLink.MASK] = mask
    d.chain[at, ChainLink.HELD] = count
    d.chain[at, ChainLink.NEXT] = -1
    if last >= 0:
        d.chain[last, ChainLink.NEXT] = at
    else:
        d.chain[at, ChainLink.LINKS] = 1
        d.chain[at, ChainLink.LAST] = at
    return int(at)


@kernel
def take_first_free(d: Devices, need: int) -> int:
    """Take the lowest free devices there are; returns the first link."""
    first, last, links = -1, -1, 0
    for word in range(d.by_count.shape[1]):
        nodes = d.by_count[0, word]
        while nodes != 0:
            node = 64 * word + lowest(nodes)
            nodes &= nodes - 1
            count = min(need, d.node[NodeRow.COUNT, node])
            last = _link(d, last, node, count)
            if first < 0:
                first = last
            links += 1
            need -= count
            if need == 0:
                d.chain[first, ChainLink.LINKS] = links
                d.chain[first, ChainLink.LAST] = last
                return first
    return first


@kernel
def take_tightest(d: Devices, need: int) -> int:
    """Devices of the one node that fits with least to spare, the first of these; -1: none fits."""
    for count in range(need, d.total[Total.LARGEST] + 1):
        if d.nodes_with[count] > 0:
            for word in range(d.by_count.shape[1]):
                if d.by_count[count, word] != 0:
                    return _link(d, -1, 64 * word + lowest(d.by_count[count, word]), need)
    return -1


@kernel
def choose_many(d: Devices, room: int, need: int, whole: bool) -> int:
    """Nodes for a gang larger than any of them: idle ones, and for the rest one more or the tightest fit. How many; 0: it does not fit.

    `room` is the line with what each node has: what is free now, or what would be if others stopped.
    """
    used, left = 0, need
    for node in range(d.node.shape[1]):
        size = d.node[NodeRow.SIZE, node]
        if size == 0 or (left < size and not whole) or d.node[room, node] < size:
            continue
        d.node[NodeRow.CHOSEN, used] = node
        d.node[NodeRow.PART, used] = min(size, left)
        left -= d.node[NodeRow.PART, used]
        used += 1
        if left == 0:
            return used
    if whole:
        return 0
    best, best_room = -1, 1 << 60
    for node in range(d.node.shape[1]):
        if left <= d.node[room, node] < best_room:
            taken = False
            for k in range(used):
                taken = taken or d.node[NodeRow.CHOSEN, k] == node
            if not taken:
                best, best_room = node, d.node[room, node]
    if best < 0 or left > d.total[Total.LARGEST]:
        return 0
    d.node[NodeRow.CHOSEN, used] = best
    d.node[NodeRow.PART, used] = left
    return used + 1


@kernel
def take_chosen(d: Devices, used: int) -> int:
    """The devices that `choose_many` has found."""
    first, last = -1, -1
    for k in range(used):
        last = _link(d, last, d.node[NodeRow.CHOSEN, k], d.node[NodeRow.PART, k])
        if first < 0:
            first = last
    d.chain[first, ChainLink.LINKS] = used
    d.chain[first, ChainLink.LAST] = last
    return first


@kernel
def lend(d: Devices, link: int) -> None:
    """Let others have the devices of a chain, which stays as it is."""
    while link >= 0:
        node = d.chain[link, ChainLink.NODE]
        d.node[NodeRow.FREE, node] |= d.chain[link, ChainLink.MASK]
        _count(d, node, d.node[NodeRow.COUNT, node] + d.chain[link, ChainLink.HELD])
        link = d.chain[link, ChainLink.NEXT]


@kernel
def reclaim(d: Devices, first: int) -> bool:
    """Take exactly the devices of a chain that was lent, if all of them are free."""
    link = first
    while link >= 0:
        if d.node[NodeRow.FREE, d.chain[link, ChainLink.NODE]] & d.chain[link, ChainLink.MASK] != d.chain[link, ChainLink.MASK]:
            return False
        link = d.chain[link, ChainLink.NEXT]
    link = first
    while link >= 0:
        node = d.chain[link, ChainLink.NODE]
        d.node[NodeRow.FREE, node] ^= d.chain[link, ChainLink.MASK]
        _count(d, node, d.node[NodeRow.COUNT, node] - d.chain[link, ChainLink.HELD])
        link = d.chain[link, ChainLink.NEXT]
    return True


@kernel
def forget(d: Devices, first: int) -> None:
    """The links of a chain may be used again; its devices have been lent already."""
    d.chain[d.chain[first, ChainLink.LAST], ChainLink.NEXT] = d.total[Total.SPARE]
    d.total[Total.SPARE] = first
