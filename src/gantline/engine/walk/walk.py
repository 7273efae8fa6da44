"""Walks a ranking: which gangs run, where, and which make room, in one pass.

Rows are taken in rank order, merged from those that run and those that wait. A gang that runs stays where it is. A gang that waits
takes free devices if it fits; if not, lower-ranked gangs are stopped, lowest first, but only if that makes room: a trial that fails is
undone. A victim that has its turn later in the same pass gets its own devices back if they are still free, and then nothing has happened
to it. Regimes may keep failed trials (Blox does).

Two short cuts keep the pass short without changing its outcome. During a pass free devices only become fewer, except through
evictions: a gang size that did not fit will not fit later, nor will a larger one (`tried`); only where nodes differ in size may a gang
that must sit on one find no place where a gang that takes several may (`apart`). And when the histogram of rows still to come has none
small enough, the pass is over.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Device, Job, Node, Option
from gantline.core.host_resources import asks_beside
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.gang import find_place, give_back, halt, price, set_due, start, take
from gantline.engine.lists import Lists, RowCount
from gantline.engine.log import LogColumns
from gantline.engine.ranks import before
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.engine.walk.eviction import make_room, movable, restore
from gantline.engine.walk.notes import WALK_COUNTS, Notes, Walk, notes_on, slot
from gantline.policies.placement.fit import largest_node

_PREEMPTED, _MOVED, _RESOURCES, _FRAGMENTED, _PRIORITY, _DEFERRED = (
    int(r) for r in (Reason.PREEMPTED, Reason.MOVED, Reason.RESOURCES, Reason.FRAGMENTED, Reason.PRIORITY, Reason.DEFERRED)
)
_STOP, _SHRINK = 1, 2
_PLACED = -1  # instead of a reason why not


@kernel
def walk(t: Matrices, lists: Lists, now: float, rules: EngineRules, log: LogColumns, scratch: Ints, out: Ints) -> None:
    """Walk both lists (sorted by key); they are up to date afterwards. out: [started, stopped]."""
    F, I, running, waiting = t.F, t.I, lists.running, lists.waiting
    notes = notes_on(scratch)
    number = notes.number
    keep, misfit = rules.switch[Switch.KEEP_EVICTIONS] == 1, rules.switch[Switch.MISFIT]
    n_run, n_wait = lists.number[RowCount.RUNNING], lists.number[RowCount.WAITING]
    begin(t, lists, rules, notes)
    _stop_unwanted(t, lists, rules, notes, log, now)
    _look_ahead(lists, notes)
    while number[Walk.AT_WAITING] < n_wait or number[Walk.UNDECIDED] > 0:
        if number[Walk.HOPEFUL] == 0 and number[Walk.UNDECIDED] == 0 and not keep:
            break
        from_running = number[Walk.AT_RUNNING] < n_run
        if from_running and number[Walk.AT_WAITING] < n_wait:
            from_running = before(F, running[number[Walk.AT_RUNNING]], waiting[number[Walk.AT_WAITING]])
        elif not from_running and number[Walk.AT_WAITING] >= n_wait:
            break
        if from_running:
            row = running[number[Walk.AT_RUNNING]]
            number[Walk.AT_RUNNING] += 1
            if _keeps_its_devices(t, rules, notes, row, now):
                continue
        else:
            row = waiting[number[Walk.AT_WAITING]]
            number[Walk.AT_WAITING] += 1
            smallest = I[Job.SMALLEST, row]
            notes.ahead[smallest] -= 1
            if smallest <= number[Walk.HOPE]:
                number[Walk.HOPEFUL] -= 1
            if F[Job.KEY, row] == np.inf:
                I[Job.REASON, row] = _DEFERRED
                continue
        why = _place(t, lists, rules, notes, log, row, now)
        if why != _PLACED:
            I[Job.REASON, row] = why
            if misfit == _STOP:
                break
        _hope_again(lists, notes)
    for v in range(number[Walk.VICTIMS]):
        row = notes.victim[v]
        if I[Job.FLAGS, row] != 0:
            I[Job.FLAGS, row] = 0
            halt(F, I, row, now, _PREEMPTED, log)
            number[Walk.STOPPED] += 1
    if number[Walk.STARTED] > 0 or number[Walk.STOPPED] > 0:
        regroup(F, I, lists, number[Walk.AT_WAITING], notes.gain)
    out[0], out[1] = number[Walk.STARTED], number[Walk.STOPPED]


@kernel
def begin(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes) -> None:
    """Nothing has been tried yet; what is free, and what could be had of those that run."""
    number, NI = notes.number, t.NI
    for k in range(WALK_COUNTS):
        number[k] = 0
    number[Walk.BACK] = lists.number[RowCount.RUNNING] - 1
    for node in range(NI.shape[1]):
        number[Walk.TYPES] = max(number[Walk.TYPES], NI[Node.TYPE, node] + 1)
    for k in range(number[Walk.TYPES]):
        notes.free[k], notes.reclaim[k], notes.apart[k] = 0, 0, 1 << 60
    for k in range(2 * number[Walk.TYPES]):
        notes.tried[k], notes.tried_all[k] = 1 << 60, 1 << 60
    for node in range(NI.shape[1]):
        notes.free[NI[Node.TYPE, node]] += NI[Node.FREE, node]
    if rules.switch[Switch.ONE_NODE] == 1:
        _tell_apart(NI, notes)


@kernel
def _tell_apart(NI: Ints, notes: Notes) -> None:
    """Gangs up to the largest node sit on one, larger ones on several idle ones, which need not be large where nodes of a type differ."""
    for k in range(notes.number[Walk.TYPES]):
        notes.apart[k] = largest_node(NI, k)
    for node in range(NI.shape[1]):  # below zero: they differ
        kind, size = NI[Node.TYPE, node], NI[Node.GPUS, node]
        if NI[Node.UP, node] == 1 and 0 < size < abs(notes.apart[kind]):
            notes.apart[kind] = -abs(notes.apart[kind])
    for k in range(notes.number[Walk.TYPES]):
        notes.apart[k] = -notes.apart[k] if notes.apart[k] < 0 else 1 << 60


@kernel
def _stop_unwanted(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, now: float) -> None:
    """Stop what the policy does not want to run now; what the others hold might become free."""
    if rules.switch[Switch.PREEMPT] == 0:
        return
    I = t.I
    for k in range(lists.number[RowCount.RUNNING]):
        row = lists.running[k]
        if movable(t.F, I, row, now, rules.amount[Amount.MIN_RUN]):
            kind = t.OI[Option.TYPE, I[Job.OPTION, row]]
            if t.F[Job.KEY, row] == np.inf:
                notes.free[kind] += I[Job.HELD, row]
                give_back(t, row)
                halt(t.F, I, row, now, _DEFERRED, log)
                notes.number[Walk.STOPPED] += 1
            else:
                notes.reclaim[kind] += I[Job.HELD, row]


@kernel
def _look_ahead(lists: Lists, notes: Notes) -> None:
    """All rows are still to come; count those that are small enough to find a place."""
    number, sizes = notes.number, lists.demand.shape[0]
    number[Walk.HOPE] = _largest_hope(notes)
    for k in range(sizes):
        notes.ahead[k] = lists.demand[k]
        if k <= number[Walk.HOPE]:
            number[Walk.HOPEFUL] += lists.demand[k]


@kernel
def _largest_hope(notes: Notes) -> int:
    """The largest gang that might still get devices, by what was tried and what there is."""
    hope = 0
    for k in range(notes.number[Walk.TYPES]):
        most = notes.free[k] + notes.reclaim[k]
        hope = max(hope, min(notes.tried_all[slot(notes, k, most)] - 1, most))
    return int(hope)


@kernel
def _hope_again(lists: Lists, notes: Notes) -> None:
    """What may still become free has changed: count anew the rows that it could fit."""
    number, sizes = notes.number, lists.demand.shape[0]
    old, new = number[Walk.HOPE], _largest_hope(notes)
    for k in range(new + 1, min(old + 1, sizes)):
        number[Walk.HOPEFUL] -= notes.ahead[k]
    for k in range(old + 1, min(new + 1, sizes)):
        number[Walk.HOPEFUL] += notes.ahead[k]
    number[Walk.HOPE] = new


@kernel
def _keeps_its_devices(t: Matrices, rules: EngineRules, notes: Notes, row: int, now: float) -> bool:
    """The turn of one that runs: it stays, or, if it has been a victim, gets its devices back where they are still free."""
    I, number = t.I, notes.number
    kind = t.OI[Option.TYPE, I[Job.OPTION, row]]
    if I[Job.FLAGS, row] == 0:
        if rules.switch[Switch.PREEMPT] == 1 and movable(t.F, I, row, now, rules.amount[Amount.MIN_RUN]):
            notes.reclaim[kind] -= I[Job.HELD, row]
            if number[Walk.BY_NODE] == 1:
                device = I[Job.HEAD, row]
                while device >= 0:
                    t.NI[Node.RECLAIM, t.D[Device.NODE, device]] -= 1 - t.D[Device.CLOSED, device]
                    device = t.D[Device.NEXT, device]
        return True
    number[Walk.UNDECIDED] -= 1
    if rules.switch[Switch.KEEP_EVICTIONS] == 0 and restore(t, notes, I[Job.FLAGS, row] - 1):
        notes.free[kind] -= I[Job.HELD, row]
        I[Job.FLAGS, row] = 0
        return True
    return False


@kernel
def _place(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, row: int, now: float) -> int:
    """Give the row the first of its options that can be had, and let it begin; else why there is none."""
    OI, keep, preempt = t.OI, rules.switch[Switch.KEEP_EVICTIONS] == 1, rules.switch[Switch.PREEMPT] == 1
    first, last = t.I[Job.OPTION_FIRST, row], t.I[Job.OPTION_FIRST, row] + t.I[Job.OPTION_COUNT, row]
    fragmented = False
    for option in range(first, last):
        kind, need = OI[Option.TYPE, option], OI[Option.GPUS, option]
        enough = keep or need <= notes.free[kind] + notes.reclaim[kind]
        plain, at = implies_smaller(t, rules, option), slot(notes, kind, need)
        if not enough or (plain and not keep and need >= notes.tried_all[at]):
            fragmented = fragmented or enough
        else:
            used = 0
            if need <= notes.free[kind] and not (plain and need >= notes.tried[at]):
                used = find_place(t, rules, row, option, False, notes.nodes, notes.counts)
                if used == 0 and plain:
                    notes.tried[at] = min(notes.tried[at], need)
            if used == 0:
                fragmented = need <= notes.free[kind]
                if preempt:
                    used = make_room(t, lists, rules, notes, row, option, plain, now)
                if used == 0 and plain:
                    notes.tried_all[at] = min(notes.tried_all[at], need)
            if used > 0:
                enter(t, rules, notes, log, row, option, used, now)
                return _PLACED
        smaller = option + 1 < last and OI[Option.TYPE, option + 1] == kind and OI[Option.GPUS, option + 1] < need
        if smaller and rules.switch[Switch.MISFIT] != _SHRINK:  # smaller options are for the shrink rule only
            break
    return _FRAGMENTED if fragmented else (_PRIORITY if preempt else _RESOURCES)


@kernel
def implies_smaller(t: Matrices, rules: EngineRules, option: int) -> bool:
    """Whether a place for a gang implies a place for every smaller one."""
    beside = asks_beside(t.OF, option) or t.OI[Option.NODES, option] != 0
    return bool(not beside and rules.switch[Switch.MONOTONE] == 1 and t.OI[Option.GPUS, option] > 0)


@kernel
def enter(t: Matrices, rules: EngineRules, notes: Notes, log: LogColumns, row: int, option: int, used: int, now: float) -> None:
    """The row takes the place that was found; if it ran elsewhere until now, it has moved."""
    moved = t.I[Job.FLAGS, row] != 0
    if moved:
        halt(t.F, t.I, row, now, _MOVED, log)
        notes.number[Walk.STOPPED] += 1
        t.I[Job.FLAGS, row] = 0
    take(t, row, option, notes.nodes, notes.counts, used)
    start(t, row, now, rules, log)
    if moved:
        t.F[Job.SINCE, row] = now + price(rules.amount[Amount.MOVE], t.I[Job.HELD, row], rules.amount)
        set_due(t.F, row)
    notes.free[t.OI[Option.TYPE, option]] -= t.OI[Option.GPUS, option]
    notes.number[Walk.STARTED] += 1


@kernel
def regroup(F: Floats, I: Ints, lists: Lists, seen: int, stopped: Ints) -> None:
    """Move rows between the lists after gangs have started and stopped, keeping both in order; only the first `seen` can have started.

    Those that have stopped come in rank order, so one merge from behind puts all of them where they belong.
    """
    running, waiting, demand = lists.running, lists.waiting, lists.demand
    n_run, n_wait = lists.number[RowCount.RUNNING], lists.number[RowCount.WAITING]
    kept = 0
    begun = 0
    for k in range(seen):
        row = waiting[k]
        if I[Job.PHASE, row] == PENDING:
            waiting[kept] = row
            kept += 1
        else:
            running[n_run + begun] = row
            begun += 1
            demand[I[Job.SMALLEST, row]] -= 1
    if begun > 0:
        for k in range(seen, n_wait):
            waiting[k - begun] = waiting[k]
    n_wait -= begun
    kept = 0
    ended = 0
    for k in range(n_run + begun):
        row = running[k]
        if I[Job.PHASE, row] == PENDING:
            stopped[ended] = row
            ended += 1
            demand[I[Job.SMALLEST, row]] += 1
        else:
            running[kept] = row
            kept += 1
    lists.number[RowCount.RUNNING], lists.number[RowCount.WAITING] = kept, n_wait + ended
    at, left = n_wait - 1, ended - 1
    while left >= 0:
        if at >= 0 and before(F, stopped[left], waiting[at]):
            waiting[at + left + 1] = waiting[at]
            at -= 1
        else:
            waiting[at + left + 1] = stopped[left]
            left -= 1
