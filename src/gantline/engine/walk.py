"""Walking a ranking: who runs, where, and who makes room, in one pass.

Rows are taken in rank order, merged from those that run and those that wait. A gang that runs stays where it is. A gang that waits
takes free devices if it fits; if not, lower-ranked gangs are stopped, lowest first, but only if that makes room: a trial that fails is
undone. A victim whose turn comes later in the same pass gets its own devices back if nobody took them, and then nothing has happened
to it. Regimes may keep failed trials (Blox does).

Two short cuts keep the pass short without changing its outcome. During a pass free devices only become fewer, except through
evictions: a gang size that did not fit will not fit later (`tried`). And when the histogram of those still to come has nobody small
enough, the pass is over.
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.eviction import (
    X_AHEAD,
    X_COUNTS,
    X_FREE,
    X_GAIN,
    X_NODES,
    X_RECLAIM,
    X_TRIED,
    X_TRIED_ALL,
    X_VICTIM,
    count_reclaim,
    evict,
    movable,
    node_to_clear,
    restore,
    sits_on,
    undo,
)
from gantline.engine.gang import give_back, halt, price, set_due, start, take
from gantline.engine.ranks import B_RUNNING, B_WAITING, before
from gantline.placement.fit import CONSOLIDATED, SKEW, choose, mix

_PREEMPTED, _MOVED, _RESOURCES, _FRAGMENTED, _PRIORITY, _DEFERRED = (
    int(r) for r in (Reason.PREEMPTED, Reason.MOVED, Reason.RESOURCES, Reason.FRAGMENTED, Reason.PRIORITY, Reason.DEFERRED)
)
_STOP, _SHRINK = 1, 2


@kernel
def _largest_hope(X: Ints, types: int) -> int:
    """The largest gang that might still get devices, by what was tried and what there is."""
    hope = 0
    for k in range(types):
        hope = max(hope, min(X[X_TRIED_ALL, k] - 1, X[X_FREE, k] + X[X_RECLAIM, k]))
    return int(hope)


@kernel
def walk(
    F: Floats,
    I: Ints,
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    D: Ints,
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
) -> None:
    """Walk both lists (sorted by key); they are up to date afterwards. out: [started, stopped, waiting left]."""
    n_run, n_wait = B[B_RUNNING], B[B_WAITING]
    preempt, keep = SI[s.S_PREEMPT] == 1, SI[s.S_KEEP_EVICTIONS] == 1
    misfit, rule, whole, min_run = SI[s.S_MISFIT], SI[s.S_RULE], SI[s.S_WHOLE] == 1, SF[s.S_MIN_RUN]
    nodes, counts = X[X_NODES], X[X_COUNTS]
    started, stopped = 0, 0
    types, biggest = 0, 0
    for node in range(NI.shape[1]):
        types = max(types, NI[c.N_TYPE, node] + 1)
        biggest = max(biggest, NI[c.N_GPUS, node])
    for k in range(types):
        X[X_FREE, k], X[X_RECLAIM, k], X[X_TRIED, k], X[X_TRIED_ALL, k] = 0, 0, 1 << 60, 1 << 60
    for node in range(NI.shape[1]):
        X[X_FREE, NI[c.N_TYPE, node]] += NI[c.N_FREE, node]
    if preempt:
        for k in range(n_run):
            row = running[k]
            if movable(F, I, row, now, min_run):
                kind = OI[c.O_TYPE, I[c.OPTION, row]]
                if F[c.KEY, row] == np.inf:  # the policy does not want it to run now
                    X[X_FREE, kind] += I[c.HELD, row]
                    give_back(I, OF, OI, NF, NI, D, row)
                    halt(F, I, row, now, _DEFERRED, SI, LI, LF)
                    stopped += 1
                else:
                    X[X_RECLAIM, kind] += I[c.HELD, row]
    ahead = X[X_AHEAD]  # demands of those whose turn has not come
    sizes = hist.shape[0]
    for k in range(sizes):
        ahead[k] = hist[k]
    back = n_run - 1
    n_victims, n_saved, undecided = 0, 0, 0
    by_node, cleared = False, False
    hope = _largest_hope(X, types)
    hopeful = 0
    for k in range(min(hope + 1, sizes)):
        hopeful += ahead[k]
    at_run, at_wait = 0, 0
    while at_wait < n_wait or undecided > 0:
        if hopeful == 0 and undecided == 0 and not keep:
            break
        from_running = at_run < n_run
        if from_running and at_wait < n_wait:
            a, b = running[at_run], waiting[at_wait]
            from_running = F[c.KEY, a] < F[c.KEY, b] or (F[c.KEY, a] == F[c.KEY, b] and a < b)
        elif not from_running and at_wait >= n_wait:
            break
        if from_running:
            row = running[at_run]
            at_run += 1
            if I[c.FLAGS, row] == 0:  # it runs and stays
                if preempt and movable(F, I, row, now, min_run):
                    X[X_RECLAIM, OI[c.O_TYPE, I[c.OPTION, row]]] -= I[c.HELD, row]
                    if by_node:
                        device = I[c.HEAD, row]
                        while device >= 0:
                            NI[c.N_RECLAIM, D[c.D_NODE, device]] -= 1
                            device = D[c.D_NEXT, device]
                continue
            undecided -= 1
            if not keep and restore(I, OF, NF, NI, D, row, X, I[c.FLAGS, row] - 1):
                X[X_FREE, OI[c.O_TYPE, I[c.OPTION, row]]] -= I[c.HELD, row]
                I[c.FLAGS, row] = 0
                continue
        else:
            row = waiting[at_wait]
            at_wait += 1
            smallest = I[c.SMALLEST, row]
            ahead[smallest] -= 1
            if smallest <= hope:
                hopeful -= 1
            if F[c.KEY, row] == np.inf:
                I[c.REASON, row] = _DEFERRED
                continue
        placed, fragmented = False, False
        first_option, last_option = I[c.OPTION_FIRST, row], I[c.OPTION_FIRST, row] + I[c.OPTION_COUNT, row]
        for option in range(first_option, last_option):
            kind, need = OI[c.O_TYPE, option], OI[c.O_GPUS, option]
            # smaller options are for the shrink rule only
            last = misfit != _SHRINK and option + 1 < last_option and OI[c.O_TYPE, option + 1] == kind and OI[c.O_GPUS, option + 1] < need
            cpus, memory, spread = OF[c.O_CPUS, option], OF[c.O_MEMORY, option], OI[c.O_NODES, option]
            plain = cpus == 0.0 and memory == 0.0 and spread == 0 and rule != SKEW and need > 0
            enough = keep or need <= X[X_FREE, kind] + X[X_RECLAIM, kind]
            if not enough or (plain and not keep and need >= X[X_TRIED_ALL, kind]):
                fragmented = fragmented or enough
                if last:
                    break
                continue
            seed = mix(SI[s.S_SEED] * 1000003 + I[c.EPOCH, row] * 8191 + row)
            sensitive = I[c.CONSOLIDATE, row] == 1
            used = 0
            if need <= X[X_FREE, kind] and not (plain and need >= X[X_TRIED, kind]):
                used = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, False, nodes, counts)
                if used == 0 and plain:
                    X[X_TRIED, kind] = min(X[X_TRIED, kind], need)
            if used == 0:
                fragmented = need <= X[X_FREE, kind]
                possible = preempt and (X[X_RECLAIM, kind] > 0 or keep or need == 0)
                target = -1
                if possible and plain and not keep and rule == CONSOLIDATED and need <= biggest:
                    target = node_to_clear(F, I, NI, D, running, at_run, n_run, kind, need, now, min_run, X)
                    possible = target >= 0
                elif possible and not keep and need > 0:
                    if not by_node:
                        by_node = True
                        count_reclaim(F, I, NI, D, running, at_run, n_run, now, min_run)
                    possible = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, True, nodes, counts) > 0
                if possible:
                    if types > 1 or target >= 0 or cleared:
                        back = n_run - 1  # some were passed over before and are candidates again
                    cleared = target >= 0
                    back_before, victims_before, saved_before = back, n_victims, n_saved
                    while used == 0 and back >= at_run:
                        other = running[back]
                        back -= 1
                        if I[c.FLAGS, other] != 0 or not movable(F, I, other, now, min_run):
                            continue
                        if not keep and OI[c.O_TYPE, I[c.OPTION, other]] != kind:
                            continue  # its devices cannot help
                        if target >= 0 and not sits_on(I, D, other, target):
                            continue
                        n_saved = evict(I, OF, OI, NF, NI, D, other, X, n_victims, n_saved, by_node)
                        n_victims += 1
                        undecided += 1
                        if need <= X[X_FREE, kind] and (target < 0 or NI[c.N_FREE, target] >= need):
                            used = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, False, nodes, counts)
                    if used > 0 or keep:
                        X[X_TRIED, kind] = 1 << 60  # more is free than before
                    else:
                        for v in range(n_victims - 1, victims_before - 1, -1):
                            undo(I, OF, OI, NF, NI, D, X, v)
                            undecided -= 1
                        back, n_victims, n_saved = back_before, victims_before, saved_before
                if used == 0 and plain:
                    X[X_TRIED_ALL, kind] = min(X[X_TRIED_ALL, kind], need)
            if used > 0:
                moved = I[c.FLAGS, row] != 0
                if moved:
                    halt(F, I, row, now, _MOVED, SI, LI, LF)
                    stopped += 1
                    I[c.FLAGS, row] = 0
                take(I, OF, OI, NF, NI, D, row, option, nodes, counts, used)
                start(F, I, OF, OI, NI, D, row, now, SI, SF, LI, LF, LD, LN)
                if moved:
                    F[c.SINCE, row] = now + price(SF[s.S_MOVE], I[c.HELD, row], SF)
                    set_due(F, row)
                X[X_FREE, kind] -= need
                started += 1
                placed = True
                break
            if last:
                break
        if not placed:
            I[c.REASON, row] = _FRAGMENTED if fragmented else (_PRIORITY if preempt else _RESOURCES)
            if misfit == _STOP:
                break
        now_hope = _largest_hope(X, types)
        if now_hope != hope:
            for k in range(now_hope + 1, min(hope + 1, sizes)):
                hopeful -= ahead[k]
            for k in range(hope + 1, min(now_hope + 1, sizes)):
                hopeful += ahead[k]
            hope = now_hope
    for v in range(n_victims):
        row = X[X_VICTIM, v]
        if I[c.FLAGS, row] != 0:
            I[c.FLAGS, row] = 0
            halt(F, I, row, now, _PREEMPTED, SI, LI, LF)
            stopped += 1
    if started > 0 or stopped > 0:
        _regroup(F, I, running, waiting, B, hist, at_wait, X[X_GAIN])
    out[0], out[1], out[2] = started, stopped, B[B_WAITING]


@kernel
def _regroup(F: Floats, I: Ints, running: Ints, waiting: Ints, B: Ints, hist: Ints, seen: int, stopped: Ints) -> None:
    """Move rows between the lists after gangs have started and stopped, keeping both in order; only the first `seen` can have started.

    Those that have stopped come in rank order, so one merge from behind puts all of them where they belong.
    """
    n_run, n_wait = B[B_RUNNING], B[B_WAITING]
    kept = 0
    begun = 0
    for k in range(seen):
        row = waiting[k]
        if I[c.PHASE, row] == PENDING:
            waiting[kept] = row
            kept += 1
        else:
            running[n_run + begun] = row
            begun += 1
            hist[I[c.SMALLEST, row]] -= 1
    if begun > 0:
        for k in range(seen, n_wait):
            waiting[k - begun] = waiting[k]
    n_wait -= begun
    kept = 0
    ended = 0
    for k in range(n_run + begun):
        row = running[k]
        if I[c.PHASE, row] == PENDING:
            stopped[ended] = row
            ended += 1
            hist[I[c.SMALLEST, row]] += 1
        else:
            running[kept] = row
            kept += 1
    B[B_RUNNING], B[B_WAITING] = kept, n_wait + ended
    at, left = n_wait - 1, ended - 1
    while left >= 0:
        if at >= 0 and before(F, stopped[left], waiting[at]):
            waiting[at + left + 1] = waiting[at]
            at -= 1
        else:
            waiting[at + left + 1] = stopped[left]
            left -= 1
