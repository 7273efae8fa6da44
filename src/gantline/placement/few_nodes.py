"""Gangs on as few nodes and racks as there may be: the consolidated part of `fit.choose`, pure and compiled."""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

HIDDEN = -1  # in place of 1 for nodes that are up, while a question is about other racks


@kernel
def room(NF: Floats, NI: Ints, node: int, kind: int, cpus: float, memory: float, reclaim: bool) -> int:
    """Devices of one type the node could give to a gang with these demands per device."""
    if NI[c.N_TYPE, node] != kind or NI[c.N_UP, node] != 1:
        return 0
    count = NI[c.N_FREE, node]
    if reclaim:
        return int(count + NI[c.N_RECLAIM, node])
    if count > 0 and cpus > 0.0:
        count = min(count, int((NF[c.N_CPUS, node] + 1e-9) / cpus))
    if count > 0 and memory > 0.0:
        count = min(count, int((NF[c.N_MEMORY, node] + 1e-9) / memory))
    return int(count)


@kernel
def tightest(NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, nodes: Ints, used: int) -> int:
    """The node that fits with least to spare and is not among the first `used` of `nodes`; -1: none."""
    best, best_room = -1, 1 << 60
    for node in range(NI.shape[1]):
        have = room(NF, NI, node, kind, cpus, memory, reclaim)
        if have >= need and have < best_room:
            taken = False
            for k in range(used):
                if nodes[k] == node:
                    taken = True
            if not taken:
                best, best_room = node, have
                if have == need:
                    break
    return best


@kernel
def _whole_nodes(
    NF: Floats,
    NI: Ints,
    kind: int,
    need: int,
    cpus: float,
    memory: float,
    reclaim: bool,
    whole: bool,
    largest: int,
    nodes: Ints,
    counts: Ints,
) -> int:
    """Idle nodes, and for the rest of the gang either one more idle node or the tightest fit."""
    used = 0
    left = need
    for node in range(NI.shape[1]):
        size = NI[c.N_GPUS, node]
        if size == 0 or (left < size and not whole) or room(NF, NI, node, kind, cpus, memory, reclaim) < size:
            continue
        nodes[used] = node
        counts[used] = min(size, left)
        left -= counts[used]
        used += 1
        if left == 0:
            return used
    if whole:
        return 0
    best = tightest(NF, NI, kind, left, cpus, memory, reclaim, nodes, used)
    if best < 0 or left > largest:
        return 0
    nodes[used] = best
    counts[used] = left
    return used + 1


@kernel
def by_room(
    NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, emptiest: bool, nodes: Ints, counts: Ints
) -> int:
    """Nodes by room: the emptiest first spans the fewest nodes, the fullest first fills the gaps."""
    used = 0
    while need > 0:
        if emptiest and used > 0:
            last = tightest(NF, NI, kind, need, cpus, memory, reclaim, nodes, used)
            if last >= 0:
                nodes[used] = last
                counts[used] = need
                return used + 1
        best, best_room = -1, 0
        for node in range(NI.shape[1]):
            have = room(NF, NI, node, kind, cpus, memory, reclaim)
            if have <= 0 or (best >= 0 and ((emptiest and have <= best_room) or (not emptiest and have >= best_room))):
                continue
            taken = False
            for k in range(used):
                if nodes[k] == node:
                    taken = True
            if not taken:
                best, best_room = node, have
        if best < 0:
            return 0
        nodes[used] = best
        counts[used] = min(best_room, need)
        need -= counts[used]
        used += 1
    return used


@kernel
def _few_nodes(
    NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, whole: bool, largest: int, split: bool,
    nodes: Ints, counts: Ints,
) -> int:  # fmt: skip
    """More than one node: whole idle ones for a gang that is larger than any; where it may be `split`, else the fewest."""
    used = 0
    if need > largest:
        used = _whole_nodes(NF, NI, kind, need, cpus, memory, reclaim, whole, largest, nodes, counts)
    if used == 0 and split:
        return by_room(NF, NI, kind, need, cpus, memory, reclaim, True, nodes, counts)
    return used


@kernel
def _show(NI: Ints, rack: int, shown: bool) -> None:
    """Hide the nodes of a rack (below zero: of all), or show them again; hidden ones have no room."""
    for node in range(NI.shape[1]):
        if NI[c.N_UP, node] != 0 and (rack < 0 or NI[c.N_RACK, node] == rack):
            NI[c.N_UP, node] = 1 if shown else HIDDEN


@kernel
def _next_rack(
    NF: Floats, NI: Ints, kind: int, cpus: float, memory: float, reclaim: bool, sign: int, before: int, rack: int
) -> tuple[int, int]:
    """The rack after (`before`, `rack`) in the order of `sign` times its room, hidden or not; and that number."""
    best, best_key = -1, 1 << 60
    for node in range(NI.shape[1]):
        other = NI[c.N_RACK, node]
        first = True
        for mate in range(node - 1, -1, -1):
            if NI[c.N_RACK, mate] == other:
                first = False
                break
        if not first:
            continue
        key = 0
        for mate in range(node, NI.shape[1]):
            if NI[c.N_RACK, mate] == other:
                up = NI[c.N_UP, mate]
                NI[c.N_UP, mate] = up * up  # hidden or not
                key += sign * room(NF, NI, mate, kind, cpus, memory, reclaim)
                NI[c.N_UP, mate] = up
        later = key > before or (key == before and other > rack)
        if later and (key < best_key or (key == best_key and other < best)):
            best, best_key = int(other), key
    return best, best_key


@kernel
def _few_racks(
    NF: Floats,
    NI: Ints,
    kind: int,
    need: int,
    cpus: float,
    memory: float,
    reclaim: bool,
    whole: bool,
    largest: int,
    split: bool,
    nodes: Ints,
    counts: Ints,
) -> int:
    """The same in one rack, the tightest first; else in two, three, ... of those with most room. Hides the others meanwhile."""
    used = 0
    for several in (False, True):
        _show(NI, -1, False)
        sign = -1 if several else 1
        have, rack, key = 0, -1, -(1 << 60)
        while used == 0:
            if not several:
                _show(NI, rack, False)
                have = 0
            rack, key = _next_rack(NF, NI, kind, cpus, memory, reclaim, sign, key, rack)
            if rack < 0:
                break
            _show(NI, rack, True)
            have += sign * key
            if have >= need:
                used = _few_nodes(NF, NI, kind, need, cpus, memory, reclaim, whole, largest, split, nodes, counts)
    _show(NI, -1, True)
    return used


@kernel
def consolidated(
    NF: Floats,
    NI: Ints,
    kind: int,
    need: int,
    cpus: float,
    memory: float,
    reclaim: bool,
    whole: bool,
    split: bool,
    nodes: Ints,
    counts: Ints,
) -> int:
    """The tightest node that holds it; a gang larger than any node, or one that may be `split`, is on few nodes of few racks."""
    best = tightest(NF, NI, kind, need, cpus, memory, reclaim, nodes, 0)
    if best >= 0:
        nodes[0] = best
        counts[0] = need
        return 1
    largest = 0
    for node in range(NI.shape[1]):
        if NI[c.N_TYPE, node] == kind and NI[c.N_UP, node] == 1 and NI[c.N_GPUS, node] > largest:
            largest = NI[c.N_GPUS, node]
    if largest == 0 or (need <= largest and not split):
        return 0
    racks = False
    for node in range(NI.shape[1]):
        racks = racks or NI[c.N_RACK, node] != NI[c.N_RACK, 0]
    if racks:
        return _few_racks(NF, NI, kind, need, cpus, memory, reclaim, whole, largest, split, nodes, counts)
    return _few_nodes(NF, NI, kind, need, cpus, memory, reclaim, whole, largest, split, nodes, counts)
