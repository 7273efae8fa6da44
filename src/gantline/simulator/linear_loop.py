"""The whole loop inside one compiled function, for policies that declare their key as linear.

It calls the very kernels that the stepping loop calls (finish, arrive, sort, walk); what it adds is the key itself and the next instant at
which the order can change. A test holds it against the stepping loop with the policy's Python `key()`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.gather import elapsed
from gantline.core.phases import PENDING, RUNNING
from gantline.engine.advance import (
    B_ACTIVE,
    B_ADMITTED,
    B_FINISHED,
    B_HELD,
    B_NEXT,
    B_ORDER,
    arrive,
    finish_due,
    next_finish,
)
from gantline.engine.walk import sort_rows, walk

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

# K: coefficients of the key, in the order of policy.LinearKey
K_ARRIVAL, K_ATTAINED, K_ATTAINED_GPU, K_REMAINING, K_REMAINING_GPU, K_ESTIMATE, K_GPUS, K_PRIORITY, K_FIRST_START, K_BY_GPU, K_COUNT = range(11)
LEVEL_STEP = 1e12
NEVER_STARTED = 1e11

# T: the loop's clock and counters
T_NOW, T_ROUND, T_QUANTUM, T_LOAD_LIMIT, T_UNTIL, T_WAKE, T_LAST_DECISION, T_STEP_ALL, T_COUNT = range(9)
# C: counters
C_DECISIONS, C_ROUNDS, C_STARTED, C_STOPPED, C_TRACK_LOW, C_TRACK_HIGH, C_TRACKED_LEFT, C_MAX_ACTIVE, C_COUNT = range(9)

DONE, NEED_LOG = 0, 1


@njit(cache=True, inline="always")
def _key(F: Floats, I: Ints, row: int, now: float, K: Floats, thresholds: Floats) -> float:  # noqa: E741
    dt = elapsed(F, I, row, now)
    service = F[c.SERVICE, row] + dt
    gputime = F[c.GPUTIME, row] + I[c.HELD, row] * dt
    remaining = max(0.0, F[c.ESTIMATE, row] - (F[c.DONE, row] + F[c.RATE, row] * dt))
    key = (
        K[K_ARRIVAL] * F[c.ARRIVAL, row]
        + K[K_ATTAINED] * service
        + K[K_ATTAINED_GPU] * gputime
        + K[K_REMAINING] * remaining
        + K[K_REMAINING_GPU] * (remaining * I[c.GPUS, row])
        + K[K_ESTIMATE] * F[c.ESTIMATE, row]
        + K[K_GPUS] * I[c.GPUS, row]
        + K[K_PRIORITY] * F[c.PRIORITY, row]
    )
    if K[K_FIRST_START] != 0.0:
        first = F[c.FIRST_START, row]
        key += K[K_FIRST_START] * (NEVER_STARTED + F[c.ARRIVAL, row] if np.isnan(first) else first)
    level = 0
    measure = gputime if K[K_BY_GPU] == 1.0 else service
    for k in range(thresholds.shape[0]):
        if measure >= thresholds[k]:
            level += 1
    return level * LEVEL_STEP + key


@njit(cache=True, inline="always")
def _slope(F: Floats, I: Ints, row: int, K: Floats) -> float:  # noqa: E741
    if I[c.PHASE, row] != RUNNING:
        return 0.0
    return (
        K[K_ATTAINED] + K[K_ATTAINED_GPU] * I[c.HELD, row] - F[c.RATE, row] * (K[K_REMAINING] + K[K_REMAINING_GPU] * I[c.GPUS, row])
    )


@njit(cache=True)
def _next_change(F: Floats, I: Ints, order: Ints, n: int, now: float, K: Floats, thresholds: Floats) -> float:  # noqa: E741
    """The first instant at which two neighbours in the order might change places, or a row its level."""
    soonest = np.inf
    last_slope = 0.0
    last_key = 0.0
    moves = K[K_ATTAINED] != 0.0 or K[K_ATTAINED_GPU] != 0.0 or K[K_REMAINING] != 0.0 or K[K_REMAINING_GPU] != 0.0
    for p in range(n):
        row = order[p]
        if I[c.PHASE, row] == RUNNING:
            if F[c.SINCE, row] > now and F[c.SINCE, row] < soonest:
                soonest = F[c.SINCE, row]
            if thresholds.shape[0] > 0:
                by_gpu = K[K_BY_GPU] == 1.0
                speed = float(I[c.HELD, row]) if by_gpu else 1.0
                have = F[c.GPUTIME, row] if by_gpu else F[c.SERVICE, row]
                for k in range(thresholds.shape[0]):
                    if have < thresholds[k] and speed > 0.0:
                        at = F[c.SINCE, row] + (thresholds[k] - have) / speed
                        if at > now:
                            soonest = min(soonest, at)
                            break
                        if have + speed * elapsed(F, I, row, now) < thresholds[k]:
                            soonest = now  # rounding put the crossing behind us: look again at the next chance
                            break
        if moves:
            slope = _slope(F, I, row, K)
            key = F[c.KEY, row]
            if p > 0 and last_slope > slope:
                soonest = min(soonest, now + max(0.0, (key - last_key) / (last_slope - slope)))
            last_slope, last_key = slope, key
    return soonest


@njit(cache=True)
def run_linear(
    F: Floats,
    I: Ints,  # noqa: E741
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    active: Ints,
    order: Ints,
    B: Ints,
    SI: Ints,
    SF: Floats,
    LI: Ints32,
    LF: Floats,
    LD: Ints32,
    LN: Ints,
    scratch: Ints,
    out: Ints,
    K: Floats,
    thresholds: Floats,
    T: Floats,
    C: Ints,
) -> int:
    """Run until everything has ended (or a bound is reached); comes back early when the log is full."""
    rows = F.shape[1]
    devices = D.shape[1]
    length = T[T_ROUND]
    while True:
        if LN[0] + devices + B[B_ACTIVE] + 64 > LI.shape[1] or LN[1] + 4 * devices + 64 > LD.shape[0]:
            return NEED_LOG
        # 1. the next instant: an arrival, a finish, or a change of order
        due = T[T_WAKE]
        if B[B_NEXT] < rows:
            due = min(due, F[c.ARRIVAL, B[B_NEXT]])
        if due == np.inf:
            return DONE
        if length > 0.0:
            boundary = np.ceil(due / length - 1e-9) * length
            now = max(boundary, T[T_NOW] + length) if T[T_LAST_DECISION] >= 0.0 else boundary
            if T[T_STEP_ALL] == 1.0 and T[T_LAST_DECISION] >= 0.0:
                now = T[T_NOW] + length
            now = np.round(now / length) * length
        else:
            now = max(due, T[T_NOW])
        if now > T[T_UNTIL]:
            return DONE
        T[T_NOW] = now
        T[T_LAST_DECISION] = now
        # 2. who has finished, 3. who has arrived
        finish_due(F, I, OF, OI, NF, NI, D, active, order, B, now, SI, LI, LF)
        arrive(F, I, active, order, B, now, T[T_LOAD_LIMIT])
        if C[C_TRACK_HIGH] >= 0 and B[B_FINISHED] > 0:
            left = 0
            for row in range(C[C_TRACK_LOW], C[C_TRACK_HIGH]):
                if np.isnan(F[c.FINISH, row]):
                    left = 1
                    break
            if left == 0:
                return DONE
        n = B[B_ORDER]
        C[C_MAX_ACTIVE] = max(C[C_MAX_ACTIVE], n)
        # 4. order, 5. walk; nothing to decide while nobody waits
        waiting = 0
        for p in range(n):
            if I[c.PHASE, order[p]] == PENDING:
                waiting += 1
        C[C_DECISIONS] += 1
        if waiting > 0:
            SI[8] += 1
            for p in range(n):
                F[c.KEY, order[p]] = _key(F, I, order[p], now, K, thresholds)
            sort_rows(F, order, n)
            walk(F, I, OF, OI, NF, NI, D, order, n, now, SI, SF, LI, LF, LD, LN, scratch, out)
            C[C_STARTED] += out[0]
            C[C_STOPPED] += out[1]
            waiting = out[2]
        # 6. when to look again
        wake = next_finish(F, I, active, B[B_ACTIVE])
        if waiting > 0 and SI[2] == 1:
            change = _next_change(F, I, order, n, now, K, thresholds)
            if length == 0.0:
                change = max(change, now + T[T_QUANTUM])
            wake = min(wake, change)
        if B[B_HELD] < B[B_NEXT] and length > 0.0 and B[B_ADMITTED] > 0:
            wake = min(wake, now + length)
        T[T_WAKE] = wake
