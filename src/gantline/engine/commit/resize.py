"""What one gang does when a plan changes it: other CPUs in place, fewer devices, more devices, back to what it had. Compiled."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DOWN, FREE, HOST_RESOURCES, Device, Job, Node, Option
from gantline.core.host_resources import SLACK, asks_beside, lacks_beside, overdrawn, take_beside
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.gang import manner_of
from gantline.engine.settings import EngineRules
from gantline.policies.placement.fit import NodeCounts, choose, room, supply_for


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
    old = I[Job.OPTION, row]
    if only_less and _wants_more(OF, old, option):
        return False
    short = False
    if I[Job.NODE, row] >= 0:
        _exchange(OF, NF, old, option, I[Job.NODE, row])
        short = _short_of_more(OF, NF, old, option, I[Job.NODE, row])
    device = I[Job.HEAD, row]
    while device >= 0:
        _exchange(OF, NF, old, option, D[Device.NODE, device])
        device = D[Device.NEXT, device]
    device = I[Job.HEAD, row]
    while device >= 0:
        short = short or _short_of_more(OF, NF, old, option, D[Device.NODE, device])
        device = D[Device.NEXT, device]
    if not short:
        I[Job.OPTION, row] = option
        return True
    if I[Job.NODE, row] >= 0:
        _exchange(OF, NF, option, old, I[Job.NODE, row])
    device = I[Job.HEAD, row]
    while device >= 0:
        _exchange(OF, NF, option, old, D[Device.NODE, device])
        device = D[Device.NEXT, device]
    return False


@kernel
def _wants_more(OF: Floats, old: int, option: int) -> bool:
    """Whether an option takes more of anything beside devices than another."""
    more = False
    for k in range(Option.CPUS, Option.CPUS + HOST_RESOURCES):
        more = more or OF[k, option] > OF[k, old]
    return more


@kernel
def _exchange(OF: Floats, NF: Floats, old: int, option: int, node: int) -> None:
    """One device of a gang takes what the option says in place of what the old one said."""
    for k in range(HOST_RESOURCES):
        NF[Node.CPUS + k, node] -= OF[Option.CPUS + k, option] - OF[Option.CPUS + k, old]


@kernel
def _short_of_more(OF: Floats, NF: Floats, old: int, option: int, node: int) -> bool:
    """Whether the node has given more than it has of something that the option takes more of."""
    short = False
    for k in range(HOST_RESOURCES):
        short = short or (OF[Option.CPUS + k, option] > OF[Option.CPUS + k, old] and NF[Node.CPUS + k, node] < -SLACK)
    return short


@kernel
def free_device(t: Matrices, device: int, option: int) -> None:
    """One device of a gang with that option becomes free."""
    OF, NF, NI, D = t.OF, t.NF, t.NI, t.D
    node = D[Device.NODE, device]
    if NI[Node.UP, node] == 1 and D[Device.CLOSED, device] == 0:
        D[Device.HOLDER, device] = FREE
        NI[Node.FREE, node] += 1
    else:
        D[Device.HOLDER, device] = DOWN
    take_beside(OF, NF, option, node, -1)
    D[Device.NEXT, device] = -1


@kernel
def cut_chain(t: Matrices, row: int, length: int) -> int:
    """The gang keeps its first `length` devices. Returns the last of these."""
    I, D = t.I, t.D
    device, last = I[Job.HEAD, row], -1
    for _ in range(length):
        last = device
        device = D[Device.NEXT, device]
    D[Device.NEXT, last] = -1
    while device >= 0:
        following = D[Device.NEXT, device]
        free_device(t, device, I[Job.OPTION, row])
        device = following
    return int(last)


@kernel
def extension(t: Matrices, rules: EngineRules, row: int, option: int, kept: int, found: Spots) -> int:
    """Where a gang finds the devices that it lacks: more from its own nodes first, the rest by the rule. How many nodes; 0: nowhere."""
    I, OF, OI, NI, D = t.I, t.OF, t.OI, t.NI, t.D
    nodes, counts, hidden, idle = found.nodes, found.counts, found.hidden, found.idle
    supply = supply_for(t.NF, NI, OF, OI, option, False)
    left = OI[Option.GPUS, option] - kept
    used, homes = 0, 0
    device = I[Job.HEAD, row]
    while device >= 0 and left > 0:
        node = D[Device.NODE, device]
        seen = False
        for h in range(homes):
            seen = seen or hidden[h] == node
        if not seen:
            hidden[homes], idle[homes] = node, NI[Node.FREE, node]
            homes += 1
            count = min(room(supply, node), left)
            if count > 0:
                nodes[used], counts[used] = node, count
                used += 1
                left -= count
                NI[Node.FREE, node] = 0  # what is left there is not enough, or not needed
        device = D[Device.NEXT, device]
    if left > 0 and OI[Option.NODES, option] == 1:
        used = 0
    elif left > 0:
        rest_of = choose(supply, left, 0, manner_of(t, rules, row), NodeCounts(nodes[used:], counts[used:]))
        used = used + rest_of if rest_of > 0 else 0
    for h in range(homes):
        NI[Node.FREE, hidden[h]] = idle[h]
    return used


@kernel
def nodes_of(I: Ints, D: Ints, row: int, nodes: Ints, used: int) -> int:
    """How many nodes the chain of a row and the given nodes are together."""
    found, before, device = used, -1, I[Job.HEAD, row]
    while device >= 0:
        node = D[Device.NODE, device]
        if node != before:
            fresh = True
            for k in range(found):
                fresh = fresh and nodes[k] != node
            if fresh:
                nodes[found] = node
                found += 1
            before = node
        device = D[Device.NEXT, device]
    return int(found)


@kernel
def has_side(t: Matrices, row: int, option: int, found: Spots, used: int) -> bool:
    """Whether the nodes have what the kept devices and the new ones need beside with this option."""
    I, OF, NF, D, nodes, counts = t.I, t.OF, t.NF, t.D, found.nodes, found.counts
    old = I[Job.OPTION, row]
    if not asks_beside(OF, option):
        return True
    device = I[Job.HEAD, row]
    while device >= 0:
        node, here = D[Device.NODE, device], 0
        other = I[Job.HEAD, row]
        while other >= 0:
            here += int(D[Device.NODE, other] == node)
            other = D[Device.NEXT, other]
        more = 0
        for k in range(used):
            if nodes[k] == node:
                more += counts[k]
        for side in range(HOST_RESOURCES):
            each = OF[Option.CPUS + side, option]
            if NF[Node.CPUS + side, node] + OF[Option.CPUS + side, old] * here + SLACK < each * (here + more):
                return False
        device = D[Device.NEXT, device]
    short = False
    for k in range(used):
        short = short or lacks_beside(OF, NF, option, nodes[k], counts[k])
    return not short


@kernel
def grow_chain(t: Matrices, row: int, option: int, kept: int, found: Spots, used: int) -> None:
    """The gang goes on with this option and these devices beside its own, lowest first on each node."""
    I, OF, NF, NI, D, nodes, counts = t.I, t.OF, t.NF, t.NI, t.D, found.nodes, found.counts
    old = I[Job.OPTION, row]
    device, last = I[Job.HEAD, row], -1
    while device >= 0:
        _exchange(OF, NF, old, option, D[Device.NODE, device])
        last = device
        device = D[Device.NEXT, device]
    total = kept
    for k in range(used):
        node, left = nodes[k], counts[k]
        take_beside(OF, NF, option, node, left)
        NI[Node.FREE, node] -= left
        total += left
        device = NI[Node.FIRST, node]
        while left > 0:
            if D[Device.HOLDER, device] == FREE:
                D[Device.HOLDER, device] = row
                D[Device.NEXT, device] = -1
                D[Device.NEXT, last] = device
                last = device
                left -= 1
            device += 1
    I[Job.OPTION, row], I[Job.HELD, row] = option, total


@kernel
def restore_gang(t: Matrices, row: int, old: int, listed: Ints, first: int, held: int) -> bool:
    """Give a gang back what it had, if all of that is still there."""
    I, OF, NF, NI, D = t.I, t.OF, t.NF, t.NI, t.D
    if held == 0:
        node = -1 - listed[first]
        if lacks_beside(OF, NF, old, node, 1):
            return False
        take_beside(OF, NF, old, node, 1)
        I[Job.NODE, row], I[Job.OPTION, row], I[Job.SPREAD, row] = node, old, 1
        return True
    for k in range(first, first + held):
        holder = D[Device.HOLDER, listed[k]]
        if holder != FREE and holder != DOWN and holder != row:
            return False
    for k in range(first, first + held):
        device = listed[k]
        node = D[Device.NODE, device]
        if D[Device.HOLDER, device] != row:
            if D[Device.HOLDER, device] == FREE:
                NI[Node.FREE, node] -= 1
            D[Device.HOLDER, device] = row
            take_beside(OF, NF, old, node, 1)
        if k == first:
            I[Job.HEAD, row] = device
        else:
            D[Device.NEXT, listed[k - 1]] = device
        D[Device.NEXT, device] = -1
    short = False
    for k in range(first, first + held):
        short = short or overdrawn(OF, NF, old, D[Device.NODE, listed[k]])
    I[Job.OPTION, row], I[Job.HELD, row] = old, held
    return not short
