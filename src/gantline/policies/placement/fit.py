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

from typing import NamedTuple

import numpy as np

from gantline.core.columns import Node
from gantline.core.jit import kernel
from gantline.policies.placement.few_nodes import NodeCounts, Supply, by_room, consolidated, largest_node, room, tightest

FIRST_FREE = 0
CONSOLIDATED = 1
PREFERRED = 2
SKEW = 3
RANDOM = 4
FIRST_NODE = 5


class Picking(NamedTuple):
    """How devices are chosen."""

    rule: int
    whole: bool  # gangs larger than a node take whole idle nodes
    sensitive: bool  # the gang suffers when it is spread
    seed: int


@kernel
def mix(word: int) -> int:
    """A counter-based random word (the finaliser of SplitMix64): no state, so no history."""
    z = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]  # int() would stay unsigned


@kernel
def _first_free(supply: Supply, need: int, seats: NodeCounts) -> int:
    NI, nodes, counts = supply.NI, seats.nodes, seats.counts
    used = 0
    for node in range(NI.shape[1]):
        have = room(supply, node)
        if have > 0:
            nodes[used] = node
            counts[used] = min(have, need)
            need -= counts[used]
            used += 1
            if need == 0:
                return used
    return 0


@kernel
def _random(supply: Supply, need: int, seed: int, seats: NodeCounts) -> int:
    NI, nodes, counts = supply.NI, seats.nodes, seats.counts
    total = 0
    for node in range(NI.shape[1]):
        total += room(supply, node)
    if total < need:
        return 0
    used = 0
    drawn = 0
    for node in range(NI.shape[1]):  # selection sampling: each free device is taken with chance need / left
        have = room(supply, node)
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
def _first_node(supply: Supply, need: int, seats: NodeCounts) -> int:
    NI, nodes, counts = supply.NI, seats.nodes, seats.counts
    used, largest = 0, largest_node(NI, supply.kind)
    for node in range(NI.shape[1]):  # whole nodes first, while the gang is larger than one
        if need < largest or largest == 0:
            break
        if NI[Node.GPUS, node] == largest and room(supply, node) == largest:
            nodes[used] = node
            counts[used] = largest
            need -= largest
            used += 1
    if need == 0:
        return used
    if need >= largest:
        return 0
    for node in range(NI.shape[1]):
        if room(supply, node) >= need:
            taken = False
            for k in range(used):
                taken = taken or nodes[k] == node
            if not taken:
                nodes[used] = node
                counts[used] = need
                return used + 1
    return 0


@kernel
def _even(supply: Supply, need: int, spread: int, seats: NodeCounts) -> int:
    """Exactly `spread` nodes with an equal part on each (Sia's configurations), the first ones with one more where that cannot be."""
    if need < spread:
        return 0
    for used in range(spread):
        part = need // spread + (1 if used < need % spread else 0)
        best = tightest(supply, part, seats, used)
        if best < 0:
            return 0
        seats.nodes[used] = best
        seats.counts[used] = part
    return spread


@kernel
def choose_first_free(supply: Supply, need: int, spread: int, seats: NodeCounts) -> int:
    """`choose` by the rule first-free: what does not need the other rules is compiled without them."""
    if need == 0:  # CPUs only: the first node with room
        NF, NI = supply.NF, supply.NI
        for node in range(NI.shape[1]):
            usable = NI[Node.TYPE, node] == supply.kind and NI[Node.UP, node] == 1
            enough = NF[Node.CPUS, node] + 1e-9 >= supply.cpus and NF[Node.MEMORY, node] + 1e-9 >= supply.memory
            if usable and enough and NF[Node.STORAGE, node] + 1e-9 >= supply.storage:
                seats.nodes[0] = node
                seats.counts[0] = 0
                return 1
        return 0
    if spread > 0:
        return _even(supply, need, spread, seats)
    return _first_free(supply, need, seats)


@kernel
def choose(supply: Supply, need: int, spread: int, manner: Picking, seats: NodeCounts) -> int:
    """Fill the seats; how many nodes the gang spans, 0: it does not fit. `spread`: it must be so many; 0: as the rule says."""
    if need == 0 or spread > 0 or manner.rule == FIRST_FREE:
        return choose_first_free(supply, need, spread, seats)
    if manner.rule == RANDOM:
        return _random(supply, need, manner.seed, seats)
    if manner.rule == FIRST_NODE:
        return _first_node(supply, need, seats)
    if manner.rule == SKEW and not manner.sensitive:
        return by_room(supply, need, False, seats)
    return consolidated(supply, need, manner.whole, manner.rule == PREFERRED, seats)
