"""Free devices as bit masks, nodes by how many they have free, and gangs as short chains of (node, devices).

One device type, at most 62 devices a node. A gang's chain survives a trial in which its devices are lent away, so that giving them back is
a comparison of masks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel

# rows of `node`: mask of its free devices, how many, devices in all, number of the first, gain of a trial, room in a trial
FREE, COUNT, SIZE, FIRST, GAIN, ROOM, CHOSEN, PART, NODE_ROWS = range(9)
# columns of `chain`: node, mask, devices, next link; of the first link: how many there are, the last of them; a link is a cache line
NODE, MASK, HELD, NEXT, LINKS, LAST = range(6)
CHAIN_COLUMNS = 8
# places of `total`: free devices in all, first spare link, devices of the largest node; the same if nodes differ in size, else 0;
# whether nodes are sought by how many they have free
FREE_IN_ALL, SPARE, LARGEST, APART, SOUGHT, TOTALS = range(6)
MOST = 62  # devices of a node that a mask holds

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
    n, largest = NI.shape[1], int(NI[c.N_GPUS].max(initial=0))
    node = np.zeros((NODE_ROWS, n), dtype=np.int64)
    node[SIZE], node[FIRST], node[COUNT] = NI[c.N_GPUS], NI[c.N_FIRST], NI[c.N_GPUS]
    node[FREE] = (1 << NI[c.N_GPUS]) - 1
    by_count = np.zeros((largest + 1, (n + 63) // 64), dtype=np.uint64)
    for k in np.flatnonzero(NI[c.N_GPUS]).tolist():
        by_count[NI[c.N_GPUS, k], k // 64] |= np.uint64(1 << (k % 64))
        by_count[0, k // 64] |= np.uint64(1 << (k % 64))
    links = 2 * int(NI[c.N_GPUS].sum()) + 2
    chain = np.zeros((links, CHAIN_COLUMNS), dtype=np.int64)
    chain[:, NEXT] = np.arange(1, links + 1)
    differ = bool(((NI[c.N_GPUS] > 0) & (NI[c.N_GPUS] < largest)).any())
    total = np.array([NI[c.N_GPUS].sum(), 0, largest, largest if differ else 0, int(sought)], dtype=np.int64)
    return Devices(node, by_count.view(np.int64), np.bincount(NI[c.N_GPUS], minlength=largest + 1), chain, total)


@kernel
def lowest(mask: int) -> int:
    """The number of the lowest bit that is set."""
    return int(_BIT[(((mask & -mask) * _DE_BRUIJN) >> 58) & 63])


@kernel
def _count(d: Devices, node: int, now: int) -> None:
    """The node has so many free devices from now on."""
    before = d.node[COUNT, node]
    word, bit = node >> 6, 1 << (node & 63)
    d.node[COUNT, node] = now
    d.total[FREE_IN_ALL] += now - before
    if before == 0 or now == 0:
        d.by_count[0, word] ^= bit
    if d.total[SOUGHT] == 1:
        d.nodes_with[before] -= 1
        d.nodes_with[now] += 1
        if before > 0:
            d.by_count[before, word] ^= bit
        if now > 0:
            d.by_count[now, word] ^= bit


@kernel
def _link(d: Devices, last: int, node: int, count: int) -> int:
    """Take the lowest `count` free devices of the node as one more link behind `last`."""
    at = d.total[SPARE]
    d.total[SPARE] = d.chain[at, NEXT]
    free = d.node[FREE, node]
    mask = 0
    if count == d.node[COUNT, node]:
        mask = free
    else:
        left = free
        for _ in range(count):
            left &= left - 1
        mask = free ^ left
    d.node[FREE, node] = free ^ mask
    _count(d, node, d.node[COUNT, node] - count)
    d.chain[at, NODE] = node
    d.chain[at, MASK] = mask
    d.chain[at, HELD] = count
    d.chain[at, NEXT] = -1
    if last >= 0:
        d.chain[last, NEXT] = at
    else:
        d.chain[at, LINKS] = 1
        d.chain[at, LAST] = at
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
            count = min(need, d.node[COUNT, node])
            last = _link(d, last, node, count)
            if first < 0:
                first = last
            links += 1
            need -= count
            if need == 0:
                d.chain[first, LINKS] = links
                d.chain[first, LAST] = last
                return first
    return first


@kernel
def take_tightest(d: Devices, need: int) -> int:
    """Devices of the one node that fits with least to spare, the first of these; -1: none fits."""
    for count in range(need, d.total[LARGEST] + 1):
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
        size = d.node[SIZE, node]
        if size == 0 or (left < size and not whole) or d.node[room, node] < size:
            continue
        d.node[CHOSEN, used] = node
        d.node[PART, used] = min(size, left)
        left -= d.node[PART, used]
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
                taken = taken or d.node[CHOSEN, k] == node
            if not taken:
                best, best_room = node, d.node[room, node]
    if best < 0 or left > d.total[LARGEST]:
        return 0
    d.node[CHOSEN, used] = best
    d.node[PART, used] = left
    return used + 1


@kernel
def take_chosen(d: Devices, used: int) -> int:
    """The devices that `choose_many` has found."""
    first, last = -1, -1
    for k in range(used):
        last = _link(d, last, d.node[CHOSEN, k], d.node[PART, k])
        if first < 0:
            first = last
    d.chain[first, LINKS] = used
    d.chain[first, LAST] = last
    return first


@kernel
def lend(d: Devices, link: int) -> None:
    """Let others have the devices of a chain, which stays as it is."""
    while link >= 0:
        node = d.chain[link, NODE]
        d.node[FREE, node] |= d.chain[link, MASK]
        _count(d, node, d.node[COUNT, node] + d.chain[link, HELD])
        link = d.chain[link, NEXT]


@kernel
def reclaim(d: Devices, first: int) -> bool:
    """Take exactly the devices of a chain that was lent, if all of them are free."""
    link = first
    while link >= 0:
        if d.node[FREE, d.chain[link, NODE]] & d.chain[link, MASK] != d.chain[link, MASK]:
            return False
        link = d.chain[link, NEXT]
    link = first
    while link >= 0:
        node = d.chain[link, NODE]
        d.node[FREE, node] ^= d.chain[link, MASK]
        _count(d, node, d.node[COUNT, node] - d.chain[link, HELD])
        link = d.chain[link, NEXT]
    return True


@kernel
def forget(d: Devices, first: int) -> None:
    """The links of a chain may be used again; its devices have been lent already."""
    d.chain[d.chain[first, LAST], NEXT] = d.total[SPARE]
    d.total[SPARE] = first
