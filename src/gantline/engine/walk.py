"""Walking a ranking: who runs, where, and who makes room, in one pass.

Rows are taken in rank order. A gang that runs stays where it is. A gang that waits takes free devices if it fits; if not, lower-ranked gangs
are stopped, lowest first, but only if that makes room: a trial that fails is undone. A victim whose turn comes later in the same pass gets its own devices back if
nobody took them, and then nothing has happened to it. Regimes may keep failed trials (Blox does).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.gang import give_back, halt, start, take
from gantline.placement.fit import choose, mix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

_STOP = 1
_EVICTED = 1
_PREEMPTED, _MOVED = int(Reason.PREEMPTED), int(Reason.MOVED)
_RESOURCES, _FRAGMENTED, _PRIORITY, _BLOCKED, _DEFERRED = (
    int(r) for r in (Reason.RESOURCES, Reason.FRAGMENTED, Reason.PRIORITY, Reason.BLOCKED, Reason.DEFERRED)
)


@njit(cache=True)
def sort_rows(F: Floats, order: Ints, n: int) -> None:
    """Sort rows by (key, row). They are nearly sorted from last time: insertion, and a full sort if that proves slow."""
    budget = 6 * n + 64
    for i in range(1, n):
        row = order[i]
        key = F[c.KEY, row]
        j = i - 1
        while j >= 0:
            other = order[j]
            other_key = F[c.KEY, other]
            if other_key < key or (other_key == key and other < row):
                break
            order[j + 1] = other
            j -= 1
            budget -= 1
        order[j + 1] = row
        if budget < 0:
            rows = np.sort(order[:n])
            keys = np.empty(n)
            for k in range(n):
                keys[k] = F[c.KEY, rows[k]]
            by_key = np.argsort(keys, kind="mergesort")
            for k in range(n):
                order[k] = rows[by_key[k]]
            return


@njit(cache=True, inline="always")
def _movable(F: Floats, I: Ints, row: int, now: float, min_run: float) -> bool:  # noqa: E741
    return I[c.LOCKED, row] == 0 and (min_run <= 0.0 or now >= F[c.LAST_START, row] + min_run)


@njit(cache=True)
def _restore(I: Ints, OF: Floats, NF: Floats, NI: Ints, D: Ints, row: int, option: int, node: int, devices: Ints, first: int, count: int) -> bool:  # noqa: E741
    """Give a victim its own devices back, if all are free."""
    if count == 0:  # a grant of CPUs only
        if NF[c.N_CPUS, node] + 1e-9 < OF[c.O_CPUS, option] or NF[c.N_MEMORY, node] + 1e-9 < OF[c.O_MEMORY, option] or NI[c.N_UP, node] == 0:
            return False
        NF[c.N_CPUS, node] -= OF[c.O_CPUS, option]
        NF[c.N_MEMORY, node] -= OF[c.O_MEMORY, option]
        I[c.NODE, row] = node
        I[c.OPTION, row] = option
        return True
    for k in range(first, first + count):
        if D[c.D_HOLDER, devices[k]] != c.FREE:
            return False
        at = D[c.D_NODE, devices[k]]
        if NF[c.N_CPUS, at] + 1e-9 < OF[c.O_CPUS, option] or NF[c.N_MEMORY, at] + 1e-9 < OF[c.O_MEMORY, option]:
            return False
    last = -1
    for k in range(first, first + count):
        device = devices[k]
        D[c.D_HOLDER, device] = row
        D[c.D_NEXT, device] = -1
        at = D[c.D_NODE, device]
        NI[c.N_FREE, at] -= 1
        NF[c.N_CPUS, at] -= OF[c.O_CPUS, option]
        NF[c.N_MEMORY, at] -= OF[c.O_MEMORY, option]
        if last < 0:
            I[c.HEAD, row] = device
        else:
            D[c.D_NEXT, last] = device
        last = device
    I[c.OPTION, row] = option
    return True


@njit(cache=True)
def walk(
    F: Floats,
    I: Ints,  # noqa: E741
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
    order: Ints,
    n: int,
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
    """Walk the first `n` rows of `order`; out: [started, stopped, waiting left]."""
    kinds = scratch[5]  # free devices per type
    reclaim = scratch[6]  # devices per type that gangs ranked below the present one would give up
    types = 0
    for node in range(NI.shape[1]):
        types = max(types, NI[c.N_TYPE, node] + 1)
    for k in range(types):
        kinds[k] = 0
        reclaim[k] = 0
    for node in range(NI.shape[1]):
        kinds[NI[c.N_TYPE, node]] += NI[c.N_FREE, node]
    preempt = SI[s.S_PREEMPT] == 1
    keep = SI[s.S_KEEP_EVICTIONS] == 1
    asynchronous = SI[s.S_ASYNC] == 1
    min_run = SF[s.S_MIN_RUN]
    waiting = 0
    stopped = 0
    cpu_only = False
    available = 0
    for p in range(n):
        row = order[p]
        phase = I[c.PHASE, row]
        if phase == PENDING:
            if F[c.KEY, row] != np.inf:
                waiting += 1
            if OI[c.O_GPUS, I[c.OPTION_FIRST, row] + I[c.OPTION_COUNT, row] - 1] == 0:
                cpu_only = True
        elif preempt and (phase == RUNNING or phase == STARTING) and _movable(F, I, row, now, min_run):
            if F[c.KEY, row] == np.inf:  # the policy does not want it to run now
                kinds[OI[c.O_TYPE, I[c.OPTION, row]]] += I[c.HELD, row]
                give_back(I, OF, OI, NF, NI, D, row)
                halt(F, I, row, now, _DEFERRED, SI, LI, LF)
                stopped += 1
                continue
            reclaim[OI[c.O_TYPE, I[c.OPTION, row]]] += I[c.HELD, row]
            if I[c.HELD, row] == 0:
                cpu_only = True
    for k in range(types):
        available += kinds[k] + reclaim[k]
    nodes, counts, victims, saved = scratch[0], scratch[1], scratch[2], scratch[3]
    n_victims = 0
    n_saved = 0
    undecided = 0  # victims whose turn has not come yet
    back = n - 1
    reclaim_ready = False
    started = 0
    blocked = False
    for p in range(n):
        if (waiting == 0 and undecided == 0) or (available == 0 and not cpu_only):
            break
        row = order[p]
        phase = I[c.PHASE, row]
        evicted = I[c.FLAGS, row] != 0
        if not evicted and phase != PENDING:
            if preempt and (phase == RUNNING or phase == STARTING) and _movable(F, I, row, now, min_run):
                held = I[c.HELD, row]
                reclaim[OI[c.O_TYPE, I[c.OPTION, row]]] -= held
                available -= held
                if reclaim_ready:
                    device = I[c.HEAD, row]
                    while device >= 0:
                        NI[c.N_RECLAIM, D[c.D_NODE, device]] -= 1
                        device = D[c.D_NEXT, device]
            continue
        if F[c.KEY, row] == np.inf:
            I[c.REASON, row] = _DEFERRED
            if evicted:
                undecided -= 1
            continue
        placed = False
        if evicted:
            undecided -= 1
            if not keep:
                at = I[c.FLAGS, row] - 1
                first = scratch[4][at]
                count = I[c.HELD, row]
                if _restore(I, OF, NF, NI, D, row, scratch[7][at], scratch[8][at], saved, first, count):
                    kinds[OI[c.O_TYPE, I[c.OPTION, row]]] -= count
                    available -= count
                    I[c.FLAGS, row] = 0
                    continue
            if asynchronous:
                continue  # it must have stopped for good before it can start elsewhere
        else:
            waiting -= 1
        fragmented = False
        first_option = I[c.OPTION_FIRST, row]
        for option in range(first_option, first_option + I[c.OPTION_COUNT, row]):
            kind = OI[c.O_TYPE, option]
            need = OI[c.O_GPUS, option]
            if kind < 0 or kind >= types:
                continue
            if need > kinds[kind] + reclaim[kind] and not keep:
                continue
            seed = mix(SI[s.S_SEED] * 1000003 + SI[s.S_DECISION] * 8191 + row)
            cpus, memory, spread = OF[c.O_CPUS, option], OF[c.O_MEMORY, option], OI[c.O_NODES, option]
            rule, whole, sensitive = SI[s.S_RULE], SI[s.S_WHOLE] == 1, I[c.CONSOLIDATE, row] == 1
            used = 0
            if need <= kinds[kind]:
                used = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, False, nodes, counts)
                fragmented = used == 0
            if used == 0 and preempt and (reclaim[kind] > 0 or keep or need == 0):
                possible = True
                if not keep and need > 0:
                    if not reclaim_ready:
                        reclaim_ready = True
                        for node in range(NI.shape[1]):
                            NI[c.N_RECLAIM, node] = 0
                        for q in range(p + 1, n):
                            other = order[q]
                            if I[c.FLAGS, other] == 0 and (I[c.PHASE, other] == RUNNING or I[c.PHASE, other] == STARTING) and _movable(F, I, other, now, min_run):
                                device = I[c.HEAD, other]
                                while device >= 0:
                                    NI[c.N_RECLAIM, D[c.D_NODE, device]] += 1
                                    device = D[c.D_NEXT, device]
                    possible = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, True, nodes, counts) > 0
                if possible:
                    if types > 1:
                        back = n - 1  # gangs of other types were passed over before and are candidates again
                    back_before, victims_before, saved_before = back, n_victims, n_saved
                    while used == 0 and back > p:
                        other = order[back]
                        back -= 1
                        if I[c.FLAGS, other] != 0 or not (I[c.PHASE, other] == RUNNING or I[c.PHASE, other] == STARTING):
                            continue
                        if not _movable(F, I, other, now, min_run):
                            continue
                        other_kind = OI[c.O_TYPE, I[c.OPTION, other]]
                        if other_kind != kind and not keep:
                            continue  # its devices cannot help
                        I[c.FLAGS, other] = n_victims + 1
                        victims[n_victims] = other
                        scratch[4][n_victims] = n_saved
                        scratch[7][n_victims] = I[c.OPTION, other]
                        scratch[8][n_victims] = I[c.NODE, other]
                        n_victims += 1
                        device = I[c.HEAD, other]
                        while device >= 0:
                            saved[n_saved] = device
                            n_saved += 1
                            if reclaim_ready:
                                NI[c.N_RECLAIM, D[c.D_NODE, device]] -= 1
                            device = D[c.D_NEXT, device]
                        give_back(I, OF, OI, NF, NI, D, other)
                        kinds[other_kind] += I[c.HELD, other]
                        reclaim[other_kind] -= I[c.HELD, other]
                        undecided += 1
                        if need <= kinds[kind]:
                            used = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, False, nodes, counts)
                    if used == 0 and not keep:  # undo the trial, last victim first
                        fragmented = True
                        for v in range(n_victims - 1, victims_before - 1, -1):
                            other = victims[v]
                            _restore(I, OF, NF, NI, D, other, scratch[7][v], scratch[8][v], saved, scratch[4][v], I[c.HELD, other])
                            I[c.FLAGS, other] = 0
                            other_kind = OI[c.O_TYPE, I[c.OPTION, other]]
                            kinds[other_kind] -= I[c.HELD, other]
                            reclaim[other_kind] += I[c.HELD, other]
                            undecided -= 1
                            device = I[c.HEAD, other]
                            while device >= 0 and reclaim_ready:
                                NI[c.N_RECLAIM, D[c.D_NODE, device]] += 1
                                device = D[c.D_NEXT, device]
                        back, n_victims, n_saved = back_before, victims_before, saved_before
            if used > 0:
                if evicted:
                    halt(F, I, row, now, _MOVED, SI, LI, LF)
                    stopped += 1
                    I[c.FLAGS, row] = 0
                take(I, OF, OI, NF, NI, D, row, option, nodes, counts, used)
                start(F, I, OF, OI, NI, D, row, now, SI, SF, LI, LF, LD, LN)
                kinds[kind] -= need
                available -= need
                started += 1
                placed = True
                break
            if SI[s.S_MISFIT] != 2 and option + 1 < first_option + I[c.OPTION_COUNT, row] and OI[c.O_GPUS, option + 1] < need and OI[c.O_TYPE, option + 1] == kind:
                break  # smaller options are for the shrink rule only
        if not placed:
            I[c.REASON, row] = _FRAGMENTED if fragmented else (_PRIORITY if preempt else _RESOURCES)
            if SI[s.S_MISFIT] == _STOP:
                blocked = True
                break
    for v in range(n_victims):
        row = victims[v]
        if I[c.FLAGS, row] != 0 and I[c.PHASE, row] != PENDING:
            I[c.FLAGS, row] = 0
            halt(F, I, row, now, _PREEMPTED, SI, LI, LF)
            stopped += 1
    out[0] = started
    out[1] = stopped
    left = 0
    for p in range(n):
        row = order[p]
        if I[c.PHASE, row] == PENDING:
            left += 1
            if blocked and I[c.REASON, row] <= 1:
                I[c.REASON, row] = _BLOCKED
    out[2] = left

