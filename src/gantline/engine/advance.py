"""Moving to an instant: who has finished, who has arrived, and when something will happen next."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.phases import HELD_BACK, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.gang import complete
from gantline.engine.walk import sort_rows, walk

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)

# B: the counters of the loop
B_ACTIVE = 0  # rows in `active`
B_ORDER = 1  # rows in `order` (those of `active`, in rank order)
B_NEXT = 2  # next row to arrive
B_HELD = 3  # next row that admission has not let in
B_FINISHED = 4  # finished by the last advance
B_ADMITTED = 5  # let in by the last arrive
B_COUNT = 6


@njit(cache=True)
def finish_due(
    F: Floats, I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints, active: Ints, order: Ints, B: Ints, now: float, SI: Ints, LI: Ints32, LF: Floats  # noqa: E741
) -> None:
    """Complete every gang whose work is done by `now`, and raise estimates that turned out too low."""
    finished = 0
    n = B[B_ACTIVE]
    boundary = SI[s.S_BOUNDARY] == 1
    for i in range(n):
        row = active[i]
        if I[c.PHASE, row] == RUNNING and F[c.RATE, row] > 0.0:
            at = F[c.SINCE, row] + (F[c.WORK, row] - F[c.DONE, row]) / F[c.RATE, row]
            if at <= now:
                complete(F, I, OF, OI, NF, NI, D, row, now if boundary else at, LI, LF)
                finished += 1
            elif F[c.ESTIMATE, row] < F[c.WORK, row]:
                done = F[c.DONE, row] + F[c.RATE, row] * max(0.0, now - F[c.SINCE, row])
                if done >= F[c.ESTIMATE, row]:
                    F[c.ESTIMATE, row] = 2.0 * done  # mean residual life of a heavy tail: as long again
    B[B_FINISHED] = finished
    if finished > 0:
        B[B_ACTIVE] = _compact(I, active, n)
        B[B_ORDER] = _compact(I, order, B[B_ORDER])


@njit(cache=True)
def _compact(I: Ints, rows: Ints, n: int) -> int:  # noqa: E741
    kept = 0
    for i in range(n):
        if I[c.PHASE, rows[i]] >= PENDING and I[c.PHASE, rows[i]] < 8:
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit(cache=True)
def arrive(F: Floats, I: Ints, active: Ints, order: Ints, B: Ints, now: float, load_limit: float) -> None:  # noqa: E741
    """Let rows in that have arrived by `now`: all of them, or in order while demand is within the limit (GPUs), as Blox does."""
    rows = F.shape[1]
    while B[B_NEXT] < rows and F[c.ARRIVAL, B[B_NEXT]] <= now:
        I[c.PHASE, B[B_NEXT]] = HELD_BACK
        I[c.REASON, B[B_NEXT]] = _LOAD_LIMIT
        F[c.SINCE, B[B_NEXT]] = F[c.ARRIVAL, B[B_NEXT]]
        B[B_NEXT] += 1
    admitted = 0
    demand = 0.0
    if load_limit != np.inf and B[B_HELD] < B[B_NEXT]:
        for i in range(B[B_ACTIVE]):
            demand += I[c.GPUS, active[i]]
    while B[B_HELD] < B[B_NEXT]:
        if demand > load_limit:
            break
        row = B[B_HELD]
        B[B_HELD] += 1
        demand += I[c.GPUS, row]
        I[c.PHASE, row] = PENDING
        I[c.REASON, row] = _ARRIVED
        F[c.ADMITTED, row] = now
        active[B[B_ACTIVE]] = row
        B[B_ACTIVE] += 1
        order[B[B_ORDER]] = row
        B[B_ORDER] += 1
        admitted += 1
    B[B_ADMITTED] = admitted


@njit(cache=True)
def next_finish(F: Floats, I: Ints, active: Ints, n: int) -> float:  # noqa: E741
    """The next instant at which a running gang is done or its estimate proves too low."""
    soonest = np.inf
    for i in range(n):
        row = active[i]
        if I[c.PHASE, row] == RUNNING and F[c.RATE, row] > 0.0:
            goal = min(F[c.WORK, row], F[c.ESTIMATE, row]) if F[c.ESTIMATE, row] > F[c.DONE, row] else F[c.WORK, row]
            at = F[c.SINCE, row] + (goal - F[c.DONE, row]) / F[c.RATE, row]
            if at < soonest:
                soonest = at
    return soonest


@njit(cache=True)
def rank_and_walk(
    F: Floats,
    I: Ints,  # noqa: E741
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    key: Floats,
    rows: Ints,
    active: Ints,
    order: Ints,
    B: Ints,
    now: float,
    SI: Ints,
    SF: Floats,
    LI: Ints32,
    LF: Floats,
    LD: Ints32,
    LN: Ints,
    scratch: Ints,
    out: Ints,
) -> float:
    """One decision in the ranking form: keys of the snapshot's rows in, gangs started and stopped; the next finish comes back."""
    for i in range(key.shape[0]):
        F[c.KEY, rows[i]] = key[i]
    sort_rows(F, order, B[B_ORDER])
    walk(F, I, OF, OI, NF, NI, D, order, B[B_ORDER], now, SI, SF, LI, LF, LD, LN, scratch, out)
    return next_finish(F, I, active, B[B_ACTIVE])
