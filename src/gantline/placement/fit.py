"""Which nodes a gang gets: the pure, compiled choice behind every placement rule.

`choose` looks at what is free and answers with (node, count) pairs; it changes nothing. The rules:

    first-free     nodes in order, as many devices as each has
    consolidated   the node with exactly enough, else the fullest node that fits, else (gang larger than a node) idle nodes
    preferred      consolidated if possible, else the fewest nodes
    skew           consolidated for placement-sensitive jobs, else the smallest gaps (Tiresias, NSDI 2019, section 3.3)
    random         devices drawn without replacement
    first-node     the first node with enough; for larger gangs idle nodes and the first that takes the rest (YARN in Tiresias' simulator)

Where nodes stand in several racks, consolidated gangs that no single node holds go to the tightest rack that does, else to as few racks as
possible, the emptiest first.
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.placement.few_nodes import by_room, consolidated, room, tightest

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
        best = tightest(NF, NI, kind, part, cpus, memory, reclaim, nodes, used)
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
        return by_room(NF, NI, kind, need, cpus, memory, reclaim, False, nodes, counts)
    return consolidated(NF, NI, kind, need, cpus, memory, reclaim, whole, rule == PREFERRED, nodes, counts)
