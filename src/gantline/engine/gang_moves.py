"""What one gang does when a plan changes it: other CPUs in place, fewer devices, more devices, back to what it had. Compiled."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.find_place import manner_of
from gantline.engine.settings import EngineRules
from gantline.placement.few_nodes import NodeCounts, Supply, room
from gantline.placement.fit import choose


class Spots(NamedTuple):
    """Scratch space: nodes and how many devices of each were found; nodes that are hidden for a moment, and what is idle there."""

    nodes: Ints
    counts: Ints
    hidden: Ints
    idle: Ints


@kernel
def restyle(t: Matrices, row: int, option: int, only_less: bool) -> bool:
    """Another option on the same devices: CPUs and memory change without a restart, if every node has them. Whether it is in use now."""
    I, OF, NF, D = t.I, t.OF, t.NF, t.D
    old = I[c.OPTION, row]
    cpus, memory = OF[c.O_CPUS, option] - OF[c.O_CPUS, old], OF[c.O_MEMORY, option] - OF[c.O_MEMORY, old]
    if only_less and (cpus > 0.0 or memory > 0.0):
        return False
    if cpus != 0.0 or memory != 0.0:
        if I[c.NODE, row] >= 0:
            node = I[c.NODE, row]
            if NF[c.N_CPUS, node] + 1e-9 < cpus or NF[c.N_MEMORY, node] + 1e-9 < memory:
                return False
            NF[c.N_CPUS, node] -= cpus
            NF[c.N_MEMORY, node] -= memory
        device = I[c.HEAD, row]
        while device >= 0:
            NF[c.N_CPUS, D[c.D_NODE, device]] -= cpus
            NF[c.N_MEMORY, D[c.D_NODE, device]] -= memory
            device = D[c.D_NEXT, device]
        short, device = False, I[c.HEAD, row]
        while device >= 0:
            node = D[c.D_NODE, device]
            short = short or (cpus > 0.0 and NF[c.N_CPUS, node] < -1e-9) or (memory > 0.0 and NF[c.N_MEMORY, node] < -1e-9)
            device = D[c.D_NEXT, device]
        if short:
            device = I[c.HEAD, row]
            while device >= 0:
                NF[c.N_CPUS, D[c.D_NODE, device]] += cpus
                NF[c.N_MEMORY, D[c.D_NODE, device]] += memory
                device = D[c.D_NEXT, device]
            return False
    I[c.OPTION, row] = option
    return True


@kernel
def free_device(t: Matrices, device: int, option: int) -> None:
    """One device of a gang with that option becomes free."""
    OF, NF, NI, D = t.OF, t.NF, t.NI, t.D
    node = D[c.D_NODE, device]
    if NI[c.N_UP, node] == 1 and D[c.D_CLOSED, device] == 0:
        D[c.D_HOLDER, device] = c.FREE
        NI[c.N_FREE, node] += 1
    else:
        D[c.D_HOLDER, device] = c.DOWN
    NF[c.N_CPUS, node] += OF[c.O_CPUS, option]
    NF[c.N_MEMORY, node] += OF[c.O_MEMORY, option]
    D[c.D_NEXT, device] = -1


@kernel
def cut_chain(t: Matrices, row: int, length: int) -> int:
    """The gang keeps its first `length` devices. Returns the last of these."""
    I, D = t.I, t.D
    device, last = I[c.HEAD, row], -1
    for _ in range(length):
        last = device
        device = D[c.D_NEXT, device]
    D[c.D_NEXT, last] = -1
    while device >= 0:
        following = D[c.D_NEXT, device]
        free_device(t, device, I[c.OPTION, row])
        device = following
    return int(last)


@kernel
def extension(t: Matrices, rules: EngineRules, row: int, option: int, kept: int, found: Spots) -> int:
    """Where a gang finds the devices that it lacks: more from its own nodes first, the rest by the rule. How many nodes; 0: nowhere."""
    I, OF, OI, NI, D = t.I, t.OF, t.OI, t.NI, t.D
    nodes, counts, hidden, idle = found.nodes, found.counts, found.hidden, found.idle
    supply = Supply(t.NF, NI, OI[c.O_TYPE, option], OF[c.O_CPUS, option], OF[c.O_MEMORY, option], False)
    left = OI[c.O_GPUS, option] - kept
    used, homes = 0, 0
    device = I[c.HEAD, row]
    while device >= 0 and left > 0:
        node = D[c.D_NODE, device]
        seen = False
        for h in range(homes):
            seen = seen or hidden[h] == node
        if not seen:
            hidden[homes], idle[homes] = node, NI[c.N_FREE, node]
            homes += 1
            count = min(room(supply, node), left)
            if count > 0:
                nodes[used], counts[used] = node, count
                used += 1
                left -= count
                NI[c.N_FREE, node] = 0  # what is left there is not enough, or not needed
        device = D[c.D_NEXT, device]
    if left > 0:
        rest_of = choose(supply, left, 0, manner_of(t, rules, row), NodeCounts(nodes[used:], counts[used:]))
        used = used + rest_of if rest_of > 0 else 0
    for h in range(homes):
        NI[c.N_FREE, hidden[h]] = idle[h]
    return used


@kernel
def nodes_of(I: Ints, D: Ints, row: int, nodes: Ints, used: int) -> int:
    """How many nodes the chain of a row and the given nodes are together."""
    found, before, device = used, -1, I[c.HEAD, row]
    while device >= 0:
        node = D[c.D_NODE, device]
        if node != before:
            fresh = True
            for k in range(found):
                fresh = fresh and nodes[k] != node
            if fresh:
                nodes[found] = node
                found += 1
            before = node
        device = D[c.D_NEXT, device]
    return int(found)


@kernel
def has_side(t: Matrices, row: int, option: int, found: Spots, used: int) -> bool:
    """Whether the nodes have the CPUs and the memory that the kept devices and the new ones need with this option."""
    I, OF, NF, D, nodes, counts = t.I, t.OF, t.NF, t.D, found.nodes, found.counts
    cpus, memory, old = OF[c.O_CPUS, option], OF[c.O_MEMORY, option], I[c.OPTION, row]
    if cpus == 0.0 and memory == 0.0:
        return True
    device = I[c.HEAD, row]
    while device >= 0:
        node, here = D[c.D_NODE, device], 0
        other = I[c.HEAD, row]
        while other >= 0:
            here += int(D[c.D_NODE, other] == node)
            other = D[c.D_NEXT, other]
        more = 0
        for k in range(used):
            if nodes[k] == node:
                more += counts[k]
        if NF[c.N_CPUS, node] + OF[c.O_CPUS, old] * here + 1e-9 < cpus * (here + more):
            return False
        if NF[c.N_MEMORY, node] + OF[c.O_MEMORY, old] * here + 1e-9 < memory * (here + more):
            return False
        device = D[c.D_NEXT, device]
    for k in range(used):
        if NF[c.N_CPUS, nodes[k]] + 1e-9 < cpus * counts[k] or NF[c.N_MEMORY, nodes[k]] + 1e-9 < memory * counts[k]:
            return False
    return True


@kernel
def grow_chain(t: Matrices, row: int, option: int, kept: int, found: Spots, used: int) -> None:
    """The gang goes on with this option and these devices beside its own, lowest first on each node."""
    I, OF, NF, NI, D, nodes, counts = t.I, t.OF, t.NF, t.NI, t.D, found.nodes, found.counts
    old = I[c.OPTION, row]
    cpus, memory = OF[c.O_CPUS, option] - OF[c.O_CPUS, old], OF[c.O_MEMORY, option] - OF[c.O_MEMORY, old]
    device, last = I[c.HEAD, row], -1
    while device >= 0:
        NF[c.N_CPUS, D[c.D_NODE, device]] -= cpus
        NF[c.N_MEMORY, D[c.D_NODE, device]] -= memory
        last = device
        device = D[c.D_NEXT, device]
    total = kept
    for k in range(used):
        node, left = nodes[k], counts[k]
        NF[c.N_CPUS, node] -= OF[c.O_CPUS, option] * left
        NF[c.N_MEMORY, node] -= OF[c.O_MEMORY, option] * left
        NI[c.N_FREE, node] -= left
        total += left
        device = NI[c.N_FIRST, node]
        while left > 0:
            if D[c.D_HOLDER, device] == c.FREE:
                D[c.D_HOLDER, device] = row
                D[c.D_NEXT, device] = -1
                D[c.D_NEXT, last] = device
                last = device
                left -= 1
            device += 1
    I[c.OPTION, row], I[c.HELD, row] = option, total


@kernel
def restore_gang(t: Matrices, row: int, old: int, listed: Ints, first: int, held: int) -> bool:
    """Give a gang back what it had, if all of that is still there."""
    I, OF, NF, NI, D = t.I, t.OF, t.NF, t.NI, t.D
    if held == 0:
        node = -1 - listed[first]
        if NF[c.N_CPUS, node] + 1e-9 < OF[c.O_CPUS, old] or NF[c.N_MEMORY, node] + 1e-9 < OF[c.O_MEMORY, old]:
            return False
        NF[c.N_CPUS, node] -= OF[c.O_CPUS, old]
        NF[c.N_MEMORY, node] -= OF[c.O_MEMORY, old]
        I[c.NODE, row], I[c.OPTION, row], I[c.SPREAD, row] = node, old, 1
        return True
    for k in range(first, first + held):
        holder = D[c.D_HOLDER, listed[k]]
        if holder != c.FREE and holder != c.DOWN and holder != row:
            return False
    for k in range(first, first + held):
        device = listed[k]
        node = D[c.D_NODE, device]
        if D[c.D_HOLDER, device] != row:
            if D[c.D_HOLDER, device] == c.FREE:
                NI[c.N_FREE, node] -= 1
            D[c.D_HOLDER, device] = row
            NF[c.N_CPUS, node] -= OF[c.O_CPUS, old]
            NF[c.N_MEMORY, node] -= OF[c.O_MEMORY, old]
        if k == first:
            I[c.HEAD, row] = device
        else:
            D[c.D_NEXT, listed[k - 1]] = device
        D[c.D_NEXT, device] = -1
    short = False
    for k in range(first, first + held):
        node = D[c.D_NODE, listed[k]]
        short = (
            short
            or (OF[c.O_CPUS, old] > 0.0 and NF[c.N_CPUS, node] < -1e-9)
            or (OF[c.O_MEMORY, old] > 0.0 and NF[c.N_MEMORY, node] < -1e-9)
        )
    I[c.OPTION, row], I[c.HELD, row] = old, held
    return not short
