"""Making room: taking devices from gangs on trial, giving them back, and finding the node that is cheapest to clear."""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING, STARTING
from gantline.engine.gang import give_back

# rows of the scratch matrix
X_NODES, X_COUNTS, X_VICTIM, X_SAVED, X_OFFSET, X_OPTION, X_NODE = range(7)
X_FREE, X_RECLAIM, X_TRIED, X_TRIED_ALL, X_GAIN, X_AHEAD, X_COUNT = range(7, 14)


@kernel
def movable(F: Floats, I: Ints, row: int, now: float, min_run: float) -> bool:
    """Whether a gang may be stopped: it runs or starts, is not locked, and has had its minimum run time."""
    phase = I[c.PHASE, row]
    if (phase != RUNNING and phase != STARTING) or I[c.LOCKED, row] != 0:
        return False
    return min_run <= 0.0 or now >= F[c.LAST_START, row] + min_run


@kernel
def restore(I: Ints, OF: Floats, NF: Floats, NI: Ints, D: Ints, row: int, X: Ints, v: int) -> bool:
    """Give victim `v` its own devices back, if all are free."""
    option, node, first, count = X[X_OPTION, v], X[X_NODE, v], X[X_OFFSET, v], I[c.HELD, row]
    cpus, memory = OF[c.O_CPUS, option], OF[c.O_MEMORY, option]
    if count == 0:  # a grant of CPUs only
        if NF[c.N_CPUS, node] + 1e-9 < cpus or NF[c.N_MEMORY, node] + 1e-9 < memory or NI[c.N_UP, node] == 0:
            return False
        NF[c.N_CPUS, node] -= cpus
        NF[c.N_MEMORY, node] -= memory
        I[c.NODE, row] = node
        I[c.OPTION, row] = option
        return True
    for k in range(first, first + count):
        at, here = D[c.D_NODE, X[X_SAVED, k]], 1
        if D[c.D_HOLDER, X[X_SAVED, k]] != c.FREE:
            return False
        if cpus > 0.0 or memory > 0.0:  # what all of its devices on that node need
            for j in range(first, first + count):
                here += int(j != k and D[c.D_NODE, X[X_SAVED, j]] == at)
            if NF[c.N_CPUS, at] + 1e-9 < cpus * here or NF[c.N_MEMORY, at] + 1e-9 < memory * here:
                return False
    last = -1
    for k in range(first, first + count):
        device = X[X_SAVED, k]
        at = D[c.D_NODE, device]
        D[c.D_HOLDER, device] = row
        D[c.D_NEXT, device] = -1
        NI[c.N_FREE, at] -= 1
        NF[c.N_CPUS, at] -= cpus
        NF[c.N_MEMORY, at] -= memory
        if last < 0:
            I[c.HEAD, row] = device
        else:
            D[c.D_NEXT, last] = device
        last = device
    I[c.OPTION, row] = option
    return True


@kernel
def evict(I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints, row: int, X: Ints, v: int, saved: int, by_node: bool) -> int:
    """Take the devices of a running gang away on trial, remembering which they were; the new end of the memory comes back."""
    kind = OI[c.O_TYPE, I[c.OPTION, row]]
    I[c.FLAGS, row] = v + 1
    X[X_VICTIM, v] = row
    X[X_OFFSET, v] = saved
    X[X_OPTION, v] = I[c.OPTION, row]
    X[X_NODE, v] = I[c.NODE, row]
    device = I[c.HEAD, row]
    while device >= 0:
        X[X_SAVED, saved] = device
        saved += 1
        if by_node:
            NI[c.N_RECLAIM, D[c.D_NODE, device]] -= 1
        device = D[c.D_NEXT, device]
    give_back(I, OF, OI, NF, NI, D, row)
    X[X_FREE, kind] += I[c.HELD, row]
    X[X_RECLAIM, kind] -= I[c.HELD, row]
    return saved


@kernel
def undo(I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints, X: Ints, v: int) -> None:
    """Take back the eviction of victim `v`."""
    row = X[X_VICTIM, v]
    restore(I, OF, NF, NI, D, row, X, v)
    I[c.FLAGS, row] = 0
    kind = OI[c.O_TYPE, I[c.OPTION, row]]
    X[X_FREE, kind] -= I[c.HELD, row]
    X[X_RECLAIM, kind] += I[c.HELD, row]
    device = I[c.HEAD, row]
    while device >= 0:
        NI[c.N_RECLAIM, D[c.D_NODE, device]] += 1
        device = D[c.D_NEXT, device]


@kernel
def count_reclaim(F: Floats, I: Ints, NI: Ints, D: Ints, running: Ints, first: int, n: int, now: float, min_run: float) -> None:
    """Devices per node that gangs from position `first` on would give up."""
    for node in range(NI.shape[1]):
        NI[c.N_RECLAIM, node] = 0
    for k in range(first, n):
        row = running[k]
        if I[c.FLAGS, row] == 0 and movable(F, I, row, now, min_run):
            device = I[c.HEAD, row]
            while device >= 0:
                NI[c.N_RECLAIM, D[c.D_NODE, device]] += 1
                device = D[c.D_NEXT, device]


@kernel
def node_to_clear(
    F: Floats, I: Ints, NI: Ints, D: Ints, running: Ints, first: int, n: int, kind: int, need: int, now: float, min_run: float, X: Ints
) -> int:
    """The node on which stopping the lowest-ranked gangs first makes room for `need` devices; -1: none.

    It is the node that stopping gangs from the back, one after the other, would clear first; finding it before anybody is stopped
    spares all those whose devices would not have helped.
    """
    gain = X[X_GAIN]
    for node in range(NI.shape[1]):
        gain[node] = 0
    for k in range(n - 1, first - 1, -1):
        row = running[k]
        if I[c.FLAGS, row] != 0 or not movable(F, I, row, now, min_run):
            continue
        device = I[c.HEAD, row]
        alone = I[c.SPREAD, row] == 1  # on one node: no need to go through its devices
        while device >= 0:
            node = D[c.D_NODE, device]
            gain[node] += I[c.HELD, row] if alone else 1
            if NI[c.N_FREE, node] + gain[node] >= need and NI[c.N_TYPE, node] == kind and NI[c.N_UP, node] == 1:
                return int(node)
            device = -1 if alone else D[c.D_NEXT, device]
    return -1


@kernel
def sits_on(I: Ints, D: Ints, row: int, node: int) -> bool:
    device = I[c.HEAD, row]
    while device >= 0:
        if D[c.D_NODE, device] == node:
            return True
        device = D[c.D_NEXT, device] if I[c.SPREAD, row] > 1 else -1
    return False
