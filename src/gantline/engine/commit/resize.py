"""What one gang does when a plan changes it: other CPUs in place, fewer devices, more devices, back to what it had. Compiled."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.beside import SLACK, asks_beside, lacks_beside, overdrawn, take_beside
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.gang import manner_of
from gantline.engine.settings import EngineRules
from gantline.policies.placement.few_nodes import NodeCounts, room, supply_for
from gantline.policies.placement.fit import choose


class Spots(NamedTuple):
    """Scratch space: nodes and how many devices of each were found; nodes that are hidden for a moment, and what is idle there."""

    nodes: Ints
    counts: Ints
    hidden: Ints
    idle: Ints


@kernel
def restyle(t: Matrices, row: int, option: int, only_less: bool) -> bool:
    """Another option on the same devices: what it takes beside changes without a restart, if nodes have it. Whether it is in use now."""
    I, OF, NF, D = t.I, t.OF, t.NF, t.D
    old = I[c.OPTION, row]
    if only_less and _wants_more(OF, old, option):
        return False
    short = False
    if I[c.NODE, row] >= 0:
        _exchange(OF, NF, old, option, I[c.NODE, row])
        short = _short_of_more(OF, NF, old, option, I[c.NODE, row])
    device = I[c.HEAD, row]
    while device >= 0:
        _exchange(OF, NF, old, option, D[c.D_NODE, device])
        device = D[c.D_NEXT, device]
    device = I[c.HEAD, row]
    while device >= 0:
        short = short or _short_of_more(OF, NF, old, option, D[c.D_NODE, device])
        device = D[c.D_NEXT, device]
    if not short:
        I[c.OPTION, row] = option
        return True
    if I[c.NODE, row] >= 0:
        _exchange(OF, NF, option, old, I[c.NODE, row])
    device = I[c.HEAD, row]
    while device >= 0:
        _exchange(OF, NF, option, old, D[c.D_NODE, device])
        device = D[c.D_NEXT, device]
    return False


@kernel
def _wants_more(OF: Floats, old: int, option: int) -> bool:
    """Whether an option takes more of anything beside devices than another."""
    more = False
    for k in range(c.O_CPUS, c.O_CPUS + c.BESIDE):
        more = more or OF[k, option] > OF[k, old]
    return more


@kernel
def _exchange(OF: Floats, NF: Floats, old: int, option: int, node: int) -> None:
    """One device of a gang takes what the option says in place of what the old one said."""
    for k in range(c.BESIDE):
        NF[c.N_CPUS + k, node] -= OF[c.O_CPUS + k, option] - OF[c.O_CPUS + k, old]


@kernel
def _short_of_more(OF: Floats, NF: Floats, old: int, option: int, node: int) -> bool:
    """Whether the node has given more than it has of something that the option takes more of."""
    short = False
    for k in range(c.BESIDE):
        short = short or (OF[c.O_CPUS + k, option] > OF[c.O_CPUS + k, old] and NF[c.N_CPUS + k, node] < -SLACK)
    return short


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
    take_beside(OF, NF, option, node, -1)
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
    supply = supply_for(t.NF, NI, OF, OI, option, False)
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
    if left > 0 and OI[c.O_NODES, option] == 1:
        used = 0
    elif left > 0:
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
    """Whether the nodes have what the kept devices and the new ones need beside with this option."""
    I, OF, NF, D, nodes, counts = t.I, t.OF, t.NF, t.D, found.nodes, found.counts
    old = I[c.OPTION, row]
    if not asks_beside(OF, option):
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
        for side in range(c.BESIDE):
            each = OF[c.O_CPUS + side, option]
            if NF[c.N_CPUS + side, node] + OF[c.O_CPUS + side, old] * here + SLACK < each * (here + more):
                return False
        device = D[c.D_NEXT, device]
    short = False
    for k in range(used):
        short = short or lacks_beside(OF, NF, option, nodes[k], counts[k])
    return not short


@kernel
def grow_chain(t: Matrices, row: int, option: int, kept: int, found: Spots, used: int) -> None:
    """The gang goes on with this option and these devices beside its own, lowest first on each node."""
    I, OF, NF, NI, D, nodes, counts = t.I, t.OF, t.NF, t.NI, t.D, found.nodes, found.counts
    old = I[c.OPTION, row]
    device, last = I[c.HEAD, row], -1
    while device >= 0:
        _exchange(OF, NF, old, option, D[c.D_NODE, device])
        last = device
        device = D[c.D_NEXT, device]
    total = kept
    for k in range(used):
        node, left = nodes[k], counts[k]
        take_beside(OF, NF, option, node, left)
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
        if lacks_beside(OF, NF, old, node, 1):
            return False
        take_beside(OF, NF, old, node, 1)
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
            take_beside(OF, NF, old, node, 1)
        if k == first:
            I[c.HEAD, row] = device
        else:
            D[c.D_NEXT, listed[k - 1]] = device
        D[c.D_NEXT, device] = -1
    short = False
    for k in range(first, first + held):
        short = short or overdrawn(OF, NF, old, D[c.D_NODE, listed[k]])
    I[c.OPTION, row], I[c.HELD, row] = old, held
    return not short
