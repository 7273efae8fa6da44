"""Which nodes a gang gets: the pure, compiled choice behind every placement rule.

`choose` looks at what is free and answers with (node, count) pairs; it changes nothing. The rules:

    first-free     nodes in order, as many devices as each has
    consolidated   the node with exactly enough, else the fullest node that fits, else (gang larger than a node) idle nodes
    preferred      consolidated if possible, else the fewest nodes
    skew           consolidated for placement-sensitive jobs, else the smallest gaps (Tiresias, NSDI 2019, section 3.3)
    random         devices drawn without replacement
    first-node     the first node with enough; for larger gangs idle nodes and the first that takes the rest (YARN in Tiresias' simulator)
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

FIRST_FREE = 0
CONSOLIDATED = 1
PREFERRED = 2
SKEW = 3
RANDOM = 4
FIRST_NODE = 5


@kernel
def mix(word: int) -> int:
    """A counter-based random word (the finaliser of SplitMix64): no state, so no history."""
    z = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]  # int() would stay unsigned


@kernel
def room(NF: Floats, NI: Ints, node: int, kind: int, cpus: float, memory: float, reclaim: bool) -> int:
    """Devices of one type the node could give to a gang with these demands per device."""
    if NI[c.N_TYPE, node] != kind or NI[c.N_UP, node] == 0:
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
def _first_free(NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, nodes: Ints, counts: Ints) -> int:
    used = 0
    for node in range(NI.shape[1]):
        have = room(NF, NI, node, kind, cpus, memory, reclaim)
        if have > 0:
            nodes[used] = node
            counts[used] = min(have, need)
            need -= counts[used]
            used += 1
            if need == 0:
                return used
    return 0


@kernel
def _tightest(NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, nodes: Ints, used: int) -> int:
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
def _consolidated(
    NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, whole: bool, nodes: Ints, counts: Ints
) -> int:
    best = _tightest(NF, NI, kind, need, cpus, memory, reclaim, nodes, 0)
    if best >= 0:
        nodes[0] = best
        counts[0] = need
        return 1
    largest = 0
    for node in range(NI.shape[1]):
        if NI[c.N_TYPE, node] == kind and NI[c.N_UP, node] == 1 and NI[c.N_GPUS, node] > largest:
            largest = NI[c.N_GPUS, node]
    if largest == 0 or need <= largest:
        return 0
    # larger than any node: idle nodes, and for the rest of the gang either one more idle node or the tightest fit
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
    best = _tightest(NF, NI, kind, left, cpus, memory, reclaim, nodes, used)
    if best < 0 or left > largest:
        return 0
    nodes[used] = best
    counts[used] = left
    return used + 1


@kernel
def _by_room(
    NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, emptiest: bool, nodes: Ints, counts: Ints
) -> int:
    """Nodes by room: the emptiest first spans the fewest nodes, the fullest first fills the gaps."""
    used = 0
    while need > 0:
        if emptiest and used > 0:
            last = _tightest(NF, NI, kind, need, cpus, memory, reclaim, nodes, used)
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
def _random(
    NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, seed: int, nodes: Ints, counts: Ints
) -> int:
    total = 0
    for node in range(NI.shape[1]):
        total += room(NF, NI, node, kind, cpus, memory, reclaim)
    if total < need:
        return 0
    used = 0
    drawn = 0
    for node in range(NI.shape[1]):  # selection sampling: each free device is taken with chance need / left
        have = room(NF, NI, node, kind, cpus, memory, reclaim)
        got = 0
        for _ in range(have):
            if mix(seed + drawn) % total < need:
                got += 1
                need -= 1
            total -= 1
            drawn += 1
        if got > 0:
            nodes[used] = node
            counts[used] = got
            used += 1
    return used


@kernel
def _first_node(NF: Floats, NI: Ints, kind: int, need: int, cpus: float, memory: float, reclaim: bool, nodes: Ints, counts: Ints) -> int:
    used = 0
    largest = 0
    for node in range(NI.shape[1]):
        if NI[c.N_TYPE, node] == kind and NI[c.N_UP, node] == 1:
            largest = max(largest, NI[c.N_GPUS, node])
    for node in range(NI.shape[1]):  # whole nodes first, while the gang is larger than one
        if need < largest or largest == 0:
            break
        if NI[c.N_GPUS, node] == largest and room(NF, NI, node, kind, cpus, memory, reclaim) == largest:
            nodes[used] = node
            counts[used] = largest
            need -= largest
            used += 1
    if need == 0:
        return used
    if need >= largest:
        return 0
    for node in range(NI.shape[1]):
        if room(NF, NI, node, kind, cpus, memory, reclaim) >= need:
            taken = False
            for k in range(used):
                taken = taken or nodes[k] == node
            if not taken:
                nodes[used] = node
                counts[used] = need
                return used + 1
    return 0


@kernel
def _even(
    NF: Floats, NI: Ints, kind: int, need: int, spread: int, cpus: float, memory: float, reclaim: bool, nodes: Ints, counts: Ints
) -> int:
    """Exactly `spread` nodes with an equal part on each (Sia's configurations)."""
    if need % spread != 0:
        return 0
    part = need // spread
    for used in range(spread):
        best = _tightest(NF, NI, kind, part, cpus, memory, reclaim, nodes, used)
        if best < 0:
            return 0
        nodes[used] = best
        counts[used] = part
    return spread


@kernel
def choose(
    NF: Floats,
    NI: Ints,
    kind: int,
    need: int,
    spread: int,
    cpus: float,
    memory: float,
    rule: int,
    whole: bool,
    sensitive: bool,
    seed: int,
    reclaim: bool,
    nodes: Ints,
    counts: Ints,
) -> int:
    """Fill `nodes` and `counts` and return how many nodes the gang spans; 0: it does not fit."""
    if need == 0:  # CPUs only: the first node with room
        for node in range(NI.shape[1]):
            usable = NI[c.N_TYPE, node] == kind and NI[c.N_UP, node] == 1
            if usable and NF[c.N_CPUS, node] + 1e-9 >= cpus and NF[c.N_MEMORY, node] + 1e-9 >= memory:
                nodes[0] = node
                counts[0] = 0
                return 1
        return 0
    if spread > 0:
        return _even(NF, NI, kind, need, spread, cpus, memory, reclaim, nodes, counts)
    if rule == FIRST_FREE:
        return _first_free(NF, NI, kind, need, cpus, memory, reclaim, nodes, counts)
    if rule == RANDOM:
        return _random(NF, NI, kind, need, cpus, memory, reclaim, seed, nodes, counts)
    if rule == FIRST_NODE:
        return _first_node(NF, NI, kind, need, cpus, memory, reclaim, nodes, counts)
    if rule == SKEW and not sensitive:
        return _by_room(NF, NI, kind, need, cpus, memory, reclaim, False, nodes, counts)
    used = _consolidated(NF, NI, kind, need, cpus, memory, reclaim, whole, nodes, counts)
    if used == 0 and rule == PREFERRED:
        return _by_room(NF, NI, kind, need, cpus, memory, reclaim, True, nodes, counts)
    return used
