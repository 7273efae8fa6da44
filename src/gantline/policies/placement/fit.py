"""Which nodes a gang gets: the pure, compiled choice behind every placement rule.

`choose` looks at what is free and answers with (node, count) pairs; it changes nothing. The rules:

    first-free     nodes in order, as many devices as each has
    consolidated   the node with exactly enough, else the fullest node that fits, else (gang larger than a node) idle nodes
    preferred      consolidated if possible, else the fewest nodes
    skew           consolidated for placement-sensitive jobs, else the smallest gaps (Tiresias, NSDI 2019, section 3.3)
    random         devices drawn without replacement
    first-node     the first node with enough; for larger gangs idle nodes and the first that takes the rest (YARN in Tiresias' simulator)

Where nodes stand in several racks, consolidated gangs that no single node holds go to the tightest rack that does,
else to as few racks as possible, the emptiest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Node, Option
from gantline.core.jit import kernel

HIDDEN = -1  # in place of 1 for nodes that are up, while a question is about other racks


class Supply(NamedTuple):
    """Devices of one type on nodes, for gangs with these demands per device (in all, for one without devices)."""

    NF: Floats
    NI: Ints
    kind: int
    cpus: float
    memory: float
    storage: float
    reclaim: bool  # what others would give up counts as free


@kernel
def supply_for(NF: Floats, NI: Ints, OF: Floats, OI: Ints, option: int, reclaim: bool) -> Supply:
    """What nodes have for gangs with this option."""
    return Supply(NF, NI, OI[Option.TYPE, option], OF[Option.CPUS, option], OF[Option.MEMORY, option], OF[Option.STORAGE, option], reclaim)


class NodeCounts(NamedTuple):
    """The answer: nodes, and how many devices of each."""

    nodes: Ints
    counts: Ints


@kernel
def room(supply: Supply, node: int) -> int:
    """Devices that the node could give to such a gang."""
    NI = supply.NI
    if NI[Node.TYPE, node] != supply.kind or NI[Node.UP, node] != 1:
        return 0
    count = NI[Node.FREE, node]
    if supply.reclaim:
        return int(count + NI[Node.RECLAIM, node])
    if count > 0 and supply.cpus > 0.0:
        count = min(count, int((supply.NF[Node.CPUS, node] + 1e-9) / supply.cpus))
    if count > 0 and supply.memory > 0.0:
        count = min(count, int((supply.NF[Node.MEMORY, node] + 1e-9) / supply.memory))
    if count > 0 and supply.storage > 0.0:
        count = min(count, int((supply.NF[Node.STORAGE, node] + 1e-9) / supply.storage))
    return int(count)


@kernel
def largest_node(NI: Ints, kind: int) -> int:
    """Devices of the largest node of a type that is up."""
    largest = 0
    for node in range(NI.shape[1]):
        if NI[Node.TYPE, node] == kind and NI[Node.UP, node] == 1 and NI[Node.GPUS, node] > largest:
            largest = NI[Node.GPUS, node]
    return int(largest)


@kernel
def tightest(supply: Supply, need: int, chosen: NodeCounts, used: int) -> int:
    """The node that fits with least to spare and is not among the first `used` chosen; -1: none."""
    NI, nodes = supply.NI, chosen.nodes
    best, best_room = -1, 1 << 60
    for node in range(NI.shape[1]):
        have = room(supply, node)
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
def _whole_nodes(supply: Supply, need: int, whole: bool, largest: int, chosen: NodeCounts) -> int:
    """Idle nodes, and for the rest of the gang either one more idle node or the tightest fit."""
    NI, nodes, counts = supply.NI, chosen.nodes, chosen.counts
    used = 0
    left = need
    for node in range(NI.shape[1]):
        size = NI[Node.GPUS, node]
        if size == 0 or (left < size and not whole) or room(supply, node) < size:
            continue
        nodes[used] = node
        counts[used] = min(size, left)
        left -= counts[used]
        used += 1
        if left == 0:
            return used
    if whole:
        return 0
    best = tightest(supply, left, chosen, used)
    if best < 0 or left > largest:
        return 0
    nodes[used] = best
    counts[used] = left
    return used + 1


@kernel
def by_room(supply: Supply, need: int, emptiest: bool, chosen: NodeCounts) -> int:
    """Nodes by room: the emptiest first spans the fewest nodes, the fullest first fills the gaps."""
    NI, nodes, counts = supply.NI, chosen.nodes, chosen.counts
    used = 0
    while need > 0:
        if emptiest and used > 0:
            last = tightest(supply, need, chosen, used)
            if last >= 0:
                nodes[used] = last
                counts[used] = need
                return used + 1
        best, best_room = -1, 0
        for node in range(NI.shape[1]):
            have = room(supply, node)
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
def _few_nodes(supply: Supply, need: int, whole: bool, largest: int, split: bool, chosen: NodeCounts) -> int:
    """More than one node: whole idle ones for a gang that is larger than any; where it may be `split`, else the fewest."""
    used = 0
    if need > largest:
        used = _whole_nodes(supply, need, whole, largest, chosen)
    if used == 0 and split:
        return by_room(supply, need, True, chosen)
    return used


@kernel
def _show(NI: Ints, rack: int, shown: bool) -> None:
    """Hide the nodes of a rack (below zero: of all), or show them again; hidden ones have no room."""
    for node in range(NI.shape[1]):
        if NI[Node.UP, node] != 0 and (rack < 0 or NI[Node.RACK, node] == rack):
            NI[Node.UP, node] = 1 if shown else HIDDEN


@kernel
def _next_rack(supply: Supply, sign: int, before: int, rack: int) -> tuple[int, int]:
    """The rack after (`before`, `rack`) in the order of `sign` times its room, hidden or not; and that number."""
    NI = supply.NI
    best, best_key = -1, 1 << 60
    for node in range(NI.shape[1]):
        other = NI[Node.RACK, node]
        first = True
        for mate in range(node - 1, -1, -1):
            if NI[Node.RACK, mate] == other:
                first = False
                break
        if not first:
            continue
        key = 0
        for mate in range(node, NI.shape[1]):
            if NI[Node.RACK, mate] == other:
                up = NI[Node.UP, mate]
                NI[Node.UP, mate] = up * up  # hidden or not
                key += sign * room(supply, mate)
                NI[Node.UP, mate] = up
        later = key > before or (key == before and other > rack)
        if later and (key < best_key or (key == best_key and other < best)):
            best, best_key = int(other), key
    return best, best_key


@kernel
def _few_racks(supply: Supply, need: int, whole: bool, largest: int, split: bool, chosen: NodeCounts) -> int:
    """The same in one rack, the tightest first; else in two, three, ... of those with most room. Hides the others meanwhile."""
    NI = supply.NI
    used = 0
    for several in (False, True):
        _show(NI, -1, False)
        sign = -1 if several else 1
        have, rack, key = 0, -1, -(1 << 60)
        while used == 0:
            if not several:
                _show(NI, rack, False)
                have = 0
            rack, key = _next_rack(supply, sign, key, rack)
            if rack < 0:
                break
            _show(NI, rack, True)
            have += sign * key
            if have >= need:
                used = _few_nodes(supply, need, whole, largest, split, chosen)
    _show(NI, -1, True)
    return used


@kernel
def consolidated(supply: Supply, need: int, whole: bool, split: bool, chosen: NodeCounts) -> int:
    """The tightest node that holds it; a gang larger than any node, or one that may be `split`, is on few nodes of few racks."""
    NI = supply.NI
    best = tightest(supply, need, chosen, 0)
    if best >= 0:
        chosen.nodes[0] = best
        chosen.counts[0] = need
        return 1
    largest = largest_node(NI, supply.kind)
    if largest == 0 or (need <= largest and not split):
        return 0
    racks = False
    for node in range(NI.shape[1]):
        racks = racks or NI[Node.RACK, node] != NI[Node.RACK, 0]
    if racks:
        return _few_racks(supply, need, whole, largest, split, chosen)
    return _few_nodes(supply, need, whole, largest, split, chosen)


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
def _first_free(supply: Supply, need: int, chosen: NodeCounts) -> int:
    NI, nodes, counts = supply.NI, chosen.nodes, chosen.counts
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
def _random(supply: Supply, need: int, seed: int, chosen: NodeCounts) -> int:
    NI, nodes, counts = supply.NI, chosen.nodes, chosen.counts
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
def _first_node(supply: Supply, need: int, chosen: NodeCounts) -> int:
    NI, nodes, counts = supply.NI, chosen.nodes, chosen.counts
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
def _even(supply: Supply, need: int, spread: int, chosen: NodeCounts) -> int:
    """Exactly `spread` nodes with an equal part on each (Sia's configurations), the first ones with one more where that cannot be."""
    if need < spread:
        return 0
    for used in range(spread):
        part = need // spread + (1 if used < need % spread else 0)
        best = tightest(supply, part, chosen, used)
        if best < 0:
            return 0
        chosen.nodes[used] = best
        chosen.counts[used] = part
    return spread


@kernel
def choose_first_free(supply: Supply, need: int, spread: int, chosen: NodeCounts) -> int:
    """`choose` by the rule first-free: what does not need the other rules is compiled without them."""
    if need == 0:  # CPUs only: the first node with room
        NF, NI = supply.NF, supply.NI
        for node in range(NI.shape[1]):
            usable = NI[Node.TYPE, node] == supply.kind and NI[Node.UP, node] == 1
            enough = NF[Node.CPUS, node] + 1e-9 >= supply.cpus and NF[Node.MEMORY, node] + 1e-9 >= supply.memory
            if usable and enough and NF[Node.STORAGE, node] + 1e-9 >= supply.storage:
                chosen.nodes[0] = node
                chosen.counts[0] = 0
                return 1
        return 0
    if spread > 0:
        return _even(supply, need, spread, chosen)
    return _first_free(supply, need, chosen)


@kernel
def choose(supply: Supply, need: int, spread: int, manner: Picking, chosen: NodeCounts) -> int:
    """Choose nodes; how many nodes the gang spans, 0: it does not fit. `spread`: it must be so many; 0: as the rule says."""
    if need == 0 or spread > 0 or manner.rule == FIRST_FREE:
        return choose_first_free(supply, need, spread, chosen)
    if manner.rule == RANDOM:
        return _random(supply, need, manner.seed, chosen)
    if manner.rule == FIRST_NODE:
        return _first_node(supply, need, chosen)
    if manner.rule == SKEW and not manner.sensitive:
        return by_room(supply, need, False, chosen)
    return consolidated(supply, need, manner.whole, manner.rule == PREFERRED, chosen)
