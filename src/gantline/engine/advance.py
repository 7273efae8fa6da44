"""Moving to an instant: who has finished, who has arrived, and when something will happen next."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel
from gantline.core.phases import HELD_BACK, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.gang import complete, set_due
from gantline.engine.ranks import (
    B_ACTIVE,
    B_ADMITTED,
    B_FINISHED,
    B_HELD,
    B_NEXT,
    B_RUNNING,
    B_WAITING,
    drop_sorted,
    sort_rows,
)
from gantline.engine.walk import walk

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)


@kernel
def finish_due(
    F: Floats,
    I: Ints,
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    active: Ints,
    running: Ints,
    B: Ints,
    now: float,
    SI: Ints,
    LI: Ints32,
    LF: Floats,
) -> None:
    """Complete every gang whose work is done by `now`, and raise estimates that turned out too low."""
    finished = 0
    kept = 0
    boundary = SI[s.S_BOUNDARY] == 1
    for i in range(B[B_RUNNING]):
        row = running[i]
        if I[c.PHASE, row] == RUNNING and F[c.DUE, row] <= now:
            at = F[c.SINCE, row] + (F[c.WORK, row] - F[c.DONE, row]) / F[c.RATE, row]
            if at <= now:
                complete(F, I, OF, OI, NF, NI, D, row, now if boundary else at, LI, LF)
                B[B_ACTIVE] = drop_sorted(active, B[B_ACTIVE], row)
                finished += 1
                continue
            # its estimate was too low. Mean residual life of a heavy tail: as long again
            F[c.ESTIMATE, row] = 2.0 * (F[c.DONE, row] + F[c.RATE, row] * max(0.0, now - F[c.SINCE, row]))
            set_due(F, row)
        running[kept] = row
        kept += 1
    B[B_RUNNING] = kept
    B[B_FINISHED] = finished


@kernel
def arrive(F: Floats, I: Ints, active: Ints, waiting: Ints, B: Ints, hist: Ints, now: float, load_limit: float) -> None:
    """Let rows in that have arrived by `now`: all of them, or in order while demand is within the limit (GPUs), as Blox does."""
    rows = F.shape[1]
    while B[B_NEXT] < rows and F[c.ARRIVAL, B[B_NEXT]] <= now:
        I[c.PHASE, B[B_NEXT]] = HELD_BACK
        I[c.REASON, B[B_NEXT]] = _LOAD_LIMIT
        F[c.SINCE, B[B_NEXT]] = F[c.ARRIVAL, B[B_NEXT]]
        B[B_NEXT] += 1
    B[B_ADMITTED] = 0
    if B[B_HELD] >= B[B_NEXT] or load_limit < 0.0:
        return
    demand = 0.0
    if load_limit != np.inf:
        for i in range(B[B_ACTIVE]):
            demand += I[c.GPUS, active[i]]
    while B[B_HELD] < B[B_NEXT] and demand <= load_limit:
        row = B[B_HELD]
        B[B_HELD] += 1
        demand += I[c.GPUS, row]
        admit(F, I, active, waiting, B, hist, row, now)
        B[B_ADMITTED] += 1


@kernel
def admit(F: Floats, I: Ints, active: Ints, waiting: Ints, B: Ints, hist: Ints, row: int, now: float) -> None:
    """One row may compete from now on. It stands last until it is ranked."""
    I[c.PHASE, row] = PENDING
    I[c.REASON, row] = _ARRIVED
    F[c.ADMITTED, row] = now
    F[c.KEY, row] = np.inf
    at = B[B_ACTIVE]
    while at > 0 and active[at - 1] > row:
        active[at] = active[at - 1]
        at -= 1
    active[at] = row
    B[B_ACTIVE] += 1
    waiting[B[B_WAITING]] = row
    B[B_WAITING] += 1
    hist[I[c.SMALLEST, row]] += 1


@kernel
def observe(
    F: Floats,
    I: Ints,
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    active: Ints,
    running: Ints,
    waiting: Ints,
    B: Ints,
    hist: Ints,
    now: float,
    load_limit: float,
    SI: Ints,
    LI: Ints32,
    LF: Floats,
) -> None:
    """Finishes, then arrivals, up to `now`."""
    finish_due(F, I, OF, OI, NF, NI, D, active, running, B, now, SI, LI, LF)
    arrive(F, I, active, waiting, B, hist, now, load_limit)


@kernel
def next_finish(F: Floats, I: Ints, running: Ints, B: Ints) -> float:
    """The next instant at which a running gang is done or its estimate proves too low."""
    soonest = np.inf
    for i in range(B[B_RUNNING]):
        row = running[i]
        if I[c.PHASE, row] == RUNNING and F[c.DUE, row] < soonest:
            soonest = F[c.DUE, row]
    return soonest


@kernel
def next_movable(F: Floats, running: Ints, B: Ints, now: float, min_run: float) -> float:
    """The next instant at which a gang has had its minimum run time, so that it may be stopped."""
    soonest = np.inf
    if min_run > 0.0:
        for i in range(B[B_RUNNING]):
            at = F[c.LAST_START, running[i]] + min_run
            if now < at < soonest:
                soonest = at
    return soonest


@kernel
def next_look(change: float, now: float, quantum: float) -> float:
    """When an order that moves by itself is looked at again: the first whole multiple of the quantum after now at which it has changed.

    Multiples of a fixed length, rather than so long after the last look, because then looking in vain in between changes nothing.
    """
    if change == np.inf:
        return change
    number: float = max(np.ceil(change / quantum - 1e-9), np.floor(now / quantum + 1e-9) + 1.0)
    return number * quantum


@kernel
def rank_and_walk(
    F: Floats,
    I: Ints,
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    key: Floats,
    rows: Ints,
    running: Ints,
    waiting: Ints,
    B: Ints,
    hist: Ints,
    now: float,
    SI: Ints,
    SF: Floats,
    LI: Ints32,
    LF: Floats,
    LD: Ints32,
    LN: Ints,
    X: Ints,
    out: Ints,
) -> float:
    """One decision in the ranking form: keys of the snapshot's rows in, gangs started and stopped; the next finish comes back.

    A key that is not a number is refused before anything is touched: NaN comes back.
    """
    for i in range(key.shape[0]):
        if np.isnan(key[i]):
            return np.nan
    for i in range(key.shape[0]):
        F[c.KEY, rows[i]] = key[i]
    sort_rows(F, running, B[B_RUNNING])
    sort_rows(F, waiting, B[B_WAITING])
    walk(F, I, OF, OI, NF, NI, D, running, waiting, B, hist, now, SI, SF, LI, LF, LD, LN, X, out)
    return next_finish(F, I, running, B)
