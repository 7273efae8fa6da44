"""Committing simple assignments: whole gangs of their own, placed by the engine. Compiled, because rounds do this thousands of times.

Who is assigned what he has, stays. Who is not assigned, stops. All others are placed in the order in which the plan lists them.
"""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.gang import close_interval, give_back, halt, rate_of, rest, set_due, settle, start, take
from gantline.placement.fit import choose, mix

_PREEMPTED, _RESIZED, _RESOURCES, _FRAGMENTED, _DEFERRED = (
    int(r) for r in (Reason.PREEMPTED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED, Reason.DEFERRED)
)


@kernel
def assign(
    F: Floats,
    I: Ints,
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    active: Ints,
    n: int,
    rows: Ints,
    options: Ints,
    until: Floats,
    now: float,
    SI: Ints,
    SF: Floats,
    LI: Ints32,
    LF: Floats,
    LD: Ints32,
    LN: Ints,
    scratch: Ints,
    out: Ints,
) -> None:
    """Make the active rows hold exactly what `rows` and `options` say; out: [started, stopped, waiting left, refused]."""
    nodes, counts = scratch[0], scratch[1]
    started, stopped, refused = 0, 0, 0
    for k in range(rows.shape[0]):
        I[c.FLAGS, rows[k]] = k + 1
    for i in range(n):  # first everybody who gives something up
        row = active[i]
        phase = I[c.PHASE, row]
        if (phase != RUNNING and phase != STARTING) or I[c.LOCKED, row] == 1:
            continue
        k = I[c.FLAGS, row] - 1
        if k < 0:
            if now < F[c.LAST_START, row] + SF[s.S_MIN_RUN]:
                continue
            give_back(I, OF, OI, NF, NI, D, row)
            halt(F, I, row, now, _PREEMPTED, SI, LI, LF)
            stopped += 1
            continue
        old, new = I[c.OPTION, row], options[k]
        F[c.UNTIL, row] = until[k]
        if old == new:
            continue
        if same_shape(OF, OI, old, new):  # on the same devices, but perhaps at another speed
            I[c.OPTION, row] = new
            rate = rate_of(I, OF, OI, NI, D, row)
            if rate != F[c.RATE, row]:
                settle(F, I, row, now)
                F[c.RATE, row] = rate
                set_due(F, row)
            continue
        settle(F, I, row, now)
        give_back(I, OF, OI, NF, NI, D, row)
        close_interval(I, row, now, _RESIZED, LI, LF)
        rest(F, I, row, now)
        stopped += 1
    for k in range(rows.shape[0]):
        row = rows[k]
        if I[c.PHASE, row] != PENDING:
            continue
        option = options[k]
        kind = OI[c.O_TYPE, option]
        seed = mix(SI[s.S_SEED] * 1000003 + I[c.EPOCH, row] * 8191 + row)
        used = choose(
            NF,
            NI,
            kind,
            OI[c.O_GPUS, option],
            OI[c.O_NODES, option],
            OF[c.O_CPUS, option],
            OF[c.O_MEMORY, option],
            SI[s.S_RULE],
            SI[s.S_WHOLE] == 1,
            I[c.CONSOLIDATE, row] == 1,
            seed,
            False,
            nodes,
            counts,
        )
        if used == 0:
            free = 0
            for node in range(NI.shape[1]):
                if NI[c.N_TYPE, node] == kind:
                    free += NI[c.N_FREE, node]
            I[c.REASON, row] = _FRAGMENTED if free >= OI[c.O_GPUS, option] else _RESOURCES
            refused += 1
            continue
        take(I, OF, OI, NF, NI, D, row, option, nodes, counts, used)
        start(F, I, OF, OI, NI, D, row, now, SI, SF, LI, LF, LD, LN)
        F[c.UNTIL, row] = until[k]
        started += 1
    left = 0
    for i in range(n):
        row = active[i]
        if I[c.PHASE, row] == PENDING:
            left += 1
            if I[c.FLAGS, row] == 0:
                I[c.REASON, row] = _DEFERRED
        I[c.FLAGS, row] = 0
    out[0], out[1], out[2], out[3] = started, stopped, left, refused


@kernel
def same_shape(OF: Floats, OI: Ints, a: int, b: int) -> bool:
    """Whether two options ask for the same devices, so that a gang may keep what it has."""
    devices = OI[c.O_TYPE, a] == OI[c.O_TYPE, b] and OI[c.O_GPUS, a] == OI[c.O_GPUS, b] and OI[c.O_NODES, a] == OI[c.O_NODES, b]
    return bool(devices and OF[c.O_CPUS, a] == OF[c.O_CPUS, b] and OF[c.O_MEMORY, a] == OF[c.O_MEMORY, b])
