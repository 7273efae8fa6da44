"""Walks a ranking within quotas: `admission.arbiter` says whose turn it is and who gives way, and this finds the places, in one pass.

Every gang that runs stays where it is, until one that waits has its turn and finds no place, or no room within its limits. Then gangs are
stopped for it on trial, one at a time: first those of other queues that give way by their quotas, of the queue that has borrowed most
the lowest rank first; then, where the policy stops gangs for others, those of its own queue that rank below it. As soon as it fits,
those that are not needed get their devices back, the last first; if it never fits, all do. So nobody stops in vain.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job, Option
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.advance import next_finish
from gantline.engine.gang import find_place, give_back, halt
from gantline.engine.lists import Lists, RowCount
from gantline.engine.log import LogColumns
from gantline.engine.ranks import before, sort_rows
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.engine.walk.eviction import evict, leaves_some, movable, restore, was_spared
from gantline.engine.walk.notes import Notes, Walk, notes_on, slot
from gantline.engine.walk.walk import begin, enter, implies_smaller, regroup
from gantline.policies.admission.arbiter import (
    NOBODY,
    Books,
    QueueLines,
    could_ever,
    count_in,
    gives_way,
    leave,
    line_up,
    next_head,
    share,
    within_limits,
)

_PREEMPTED, _QUOTA, _RESOURCES, _FRAGMENTED, _PRIORITY, _DEFERRED, _BLOCKED = (
    int(r)
    for r in (
        Reason.PREEMPTED, Reason.QUOTA, Reason.RESOURCES, Reason.FRAGMENTED, Reason.PRIORITY, Reason.DEFERRED, Reason.BLOCKED,
    )
)  # fmt: skip
_STOP, _SHRINK = 1, 2
_PLACED: Final = -1  # instead of a reason why not
_HAS_MOVED: Final = -1  # in place of a victim's number: it is not asked again to give way


class QuotaNotes(NamedTuple):
    """What the walk keeps about quotas."""

    books: Books
    lines: QueueLines  # of rows that wait, by their place among them
    why: Ints  # by victim: the reason
    shut: Ints  # by user, 1: a job of the user waits for the user's quota, and none may pass it
    failed: Ints  # by queue and type: from this size on nothing was found, whoever gives way
    option: Ints  # by row, where `promises`: the option with which it starts; below zero: the smallest of its own
    promises: bool  # only rows within what their queues are promised start


@kernel
def walk_within_quotas(
    t: Matrices, lists: Lists, key: Floats, rows: Ints, now: float, rules: EngineRules, log: LogColumns, scratch: Ints, out: Ints,
    q: QuotaNotes,
) -> float:  # fmt: skip
    """One decision in the ranking form, as `engine.advance.rank_and_walk`, within quotas."""
    for i in range(key.shape[0]):
        if np.isnan(key[i]):
            return np.nan
    for i in range(key.shape[0]):
        t.F[Job.KEY, rows[i]] = key[i]
    sort_rows(t.F, lists.running, lists.number[RowCount.RUNNING])
    sort_rows(t.F, lists.waiting, lists.number[RowCount.WAITING])
    walk_lines(t, lists, now, rules, log, scratch, out, q)
    return next_finish(t.F, t.I, lists)


@kernel
def count_running(t: Matrices, lists: Lists, q: QuotaNotes) -> None:
    """The books of now, where every gang has its devices to itself, and no user's jobs shut out."""
    q.books.used[:], q.books.by_user[:], q.shut[:] = 0.0, 0.0, 0
    for k in range(lists.number[RowCount.RUNNING]):
        row = lists.running[k]
        count_in(q.books, t.I[Job.QUEUE, row], t.I[Job.USER, row], float(t.I[Job.HELD, row]))


@kernel
def any_exceeded(b: Books) -> bool:
    """Whether queues or users hold more than they may."""
    found = False
    for at in range(b.used.shape[0]):
        found = found or b.used[at] > b.limit[at]
    for user in range(b.by_user.shape[0]):
        found = found or b.by_user[user] > b.user_quota[0]
    return bool(found)


@kernel
def walk_lines(t: Matrices, lists: Lists, now: float, rules: EngineRules, log: LogColumns, scratch: Ints, out: Ints, q: QuotaNotes) -> None:
    """Walk both lists (sorted by key), as `engine.walk.walk`, within quotas; the books are those of now."""
    F, I = t.F, t.I
    notes = notes_on(scratch)
    number = notes.number
    begin(t, lists, rules, notes)
    _stop_unwanted(t, lists, rules, notes, log, q, now)
    _stop_beyond(t, lists, rules, notes, log, q, now)
    n_wait = _wanted(t, lists, q)
    while True:
        victims, started = number[Walk.VICTIMS], number[Walk.STARTED]
        _forget_tried(notes, q)
        _one_pass(t, lists, rules, notes, log, q, n_wait, now)
        _settle_victims(t, lists, rules, notes, log, q, victims, now)
        if number[Walk.VICTIMS] == victims or number[Walk.STARTED] == started:
            break  # else what the victims have left over may be enough for somebody who has had no place
    for k in range(lists.number[RowCount.RUNNING]):
        I[Job.FLAGS, lists.running[k]] = 0
    if number[Walk.STARTED] > 0 or number[Walk.STOPPED] > 0:
        regroup(F, I, lists, lists.number[RowCount.WAITING], notes.gain)
    out[0], out[1] = number[Walk.STARTED], number[Walk.STOPPED]


@kernel
def _stop_unwanted(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, q: QuotaNotes, now: float) -> None:
    """Stop what the policy does not want to run now."""
    I = t.I
    for k in range(lists.number[RowCount.RUNNING]):
        row = lists.running[k]
        if rules.switch[Switch.PREEMPT] == 1 and t.F[Job.KEY, row] == np.inf and movable(t.F, I, row, now, rules.amount[Amount.MIN_RUN]):
            _halt(t, notes, log, q, row, _DEFERRED, now)


@kernel
def _stop_beyond(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, q: QuotaNotes, now: float) -> None:
    """Where a limit has become less than what is held, the lowest ranks stop until it is kept, but for those that then fit beside it."""
    I, b = t.I, q.books
    for k in range(lists.number[RowCount.RUNNING] - 1, -1, -1):
        row = lists.running[k]
        if I[Job.HELD, row] == 0 or within_limits(b, I[Job.QUEUE, row], I[Job.USER, row], 0.0):
            continue
        if movable(t.F, I, row, now, rules.amount[Amount.MIN_RUN]):
            I[Job.FLAGS, row] = 1
            count_in(b, I[Job.QUEUE, row], I[Job.USER, row], -float(I[Job.HELD, row]))
    for k in range(lists.number[RowCount.RUNNING]):
        row = lists.running[k]
        if I[Job.FLAGS, row] == 1:
            I[Job.FLAGS, row] = 0
            fits = within_limits(b, I[Job.QUEUE, row], I[Job.USER, row], float(I[Job.HELD, row]))
            count_in(b, I[Job.QUEUE, row], I[Job.USER, row], float(I[Job.HELD, row]))
            if not fits:
                _halt(t, notes, log, q, row, _QUOTA, now)


@kernel
def _halt(t: Matrices, notes: Notes, log: LogColumns, q: QuotaNotes, row: int, why: int, now: float) -> None:
    """The row gives up what it holds."""
    I = t.I
    notes.free[t.OI[Option.TYPE, I[Job.OPTION, row]]] += I[Job.HELD, row]
    count_in(q.books, I[Job.QUEUE, row], I[Job.USER, row], -float(I[Job.HELD, row]))
    give_back(t, row)
    halt(t.F, I, row, now, why, log)
    notes.number[Walk.STOPPED] += 1


@kernel
def _wanted(t: Matrices, lists: Lists, q: QuotaNotes) -> int:
    """How many of those that wait the policy wants to run; they come first."""
    I, count = t.I, 0
    for k in range(lists.number[RowCount.WAITING]):
        row = lists.waiting[k]
        if t.F[Job.KEY, row] == np.inf:
            I[Job.REASON, row] = _DEFERRED
            continue
        q.lines.queue[k] = I[Job.QUEUE, row]
        size = I[Job.SMALLEST, row] if q.promises else I[Job.GPUS, row]
        q.lines.size[k] = t.OI[Option.GPUS, q.option[row]] if q.promises and q.option[row] >= 0 else size
        count = k + 1
    return count


@kernel
def _forget_tried(notes: Notes, q: QuotaNotes) -> None:
    """More may be free than before."""
    for k in range(2 * notes.number[Walk.TYPES]):
        notes.tried[k] = 1 << 60
    for k in range(q.failed.shape[0]):
        q.failed[k] = 1 << 60


@kernel
def _one_pass(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, q: QuotaNotes, n_wait: int, now: float) -> None:
    """Each row that waits has one turn."""
    I, b = t.I, q.books
    for k in range(n_wait):
        if I[Job.PHASE, lists.waiting[k]] != PENDING:
            q.lines.size[k] = -1.0  # started
    line_up(b, q.lines, n_wait)
    strict = rules.switch[Switch.MISFIT] == _STOP
    while True:
        k = next_head(b, q.lines)
        if k == NOBODY:
            return
        leave(b, q.lines, k)
        row = lists.waiting[k]
        queue, user, size = q.lines.queue[k], I[Job.USER, row], q.lines.size[k]
        if q.promises and b.used[b.domain[queue]] + size > b.quota[b.domain[queue]]:
            continue
        if q.shut[user] == 1:
            I[Job.REASON, row] = _BLOCKED
            continue
        why = _place(t, lists, rules, notes, log, q, row, now, True)
        if why == _PLACED:
            continue
        I[Job.REASON, row] = why
        if strict and could_ever(b, queue, size):
            if b.by_user[user] + size > b.user_quota[0]:
                q.shut[user] = 1
            else:
                _shut(t, lists, q, b.domain[queue])


@kernel
def _shut(t: Matrices, lists: Lists, q: QuotaNotes, domain: int) -> None:
    """No job of the queue passes the one that has just found no place."""
    k = q.lines.head[domain]
    while k >= 0:
        t.I[Job.REASON, lists.waiting[k]] = _BLOCKED
        k = q.lines.behind[k]
    q.lines.head[domain] = NOBODY


@kernel
def _settle_victims(
    t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, q: QuotaNotes, first: int, now: float
) -> None:
    """Those that lost their devices go on elsewhere, where there is a place; the others stop."""
    for v in range(first, notes.number[Walk.VICTIMS]):
        row = notes.victim[v]
        if not q.promises and _place(t, lists, rules, notes, log, q, row, now, False) == _PLACED:
            t.I[Job.FLAGS, row] = _HAS_MOVED
            continue
        halt(t.F, t.I, row, now, q.why[v], log)
        notes.number[Walk.STOPPED] += 1


@kernel
def _place(
    t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, log: LogColumns, q: QuotaNotes, row: int, now: float, stops: bool
) -> int:
    """Give the row the first of its options that can be had, and let it begin; else why there is none."""
    OI, I, b = t.OI, t.I, q.books
    first, last = I[Job.OPTION_FIRST, row], I[Job.OPTION_FIRST, row] + I[Job.OPTION_COUNT, row]
    queue, user = I[Job.QUEUE, row], I[Job.USER, row]
    fragmented, chosen = False, q.promises and q.option[row] >= 0
    if chosen:
        first, last = q.option[row], q.option[row] + 1
    for option in range(first, last):
        kind, need = OI[Option.TYPE, option], OI[Option.GPUS, option]
        if q.promises and not chosen and (need != I[Job.SMALLEST, row] or t.OF[Option.RATE, option] <= 0.0):
            continue
        used = 0
        if could_ever(b, queue, float(need)):
            plain, at = implies_smaller(t, rules, option), slot(notes, kind, need)
            if within_limits(b, queue, user, float(need)) and need <= notes.free[kind] and not (plain and need >= notes.tried[at]):
                used = find_place(t, rules, row, option, False, notes.nodes, notes.counts)
                if used == 0 and plain:
                    notes.tried[at] = min(notes.tried[at], need)
            if used == 0:
                fragmented = fragmented or need <= notes.free[kind]
                failed = b.domain[queue] * notes.number[Walk.TYPES] + kind
                if stops and not (plain and need >= q.failed[failed]):
                    used = _make_way(t, lists, rules, notes, q, row, option, now)
                    if used == 0 and plain and b.by_user[user] + need <= b.user_quota[0]:
                        q.failed[failed] = need
        if used > 0:
            enter(t, rules, notes, log, row, option, used, now)
            count_in(b, queue, user, float(need))
            return _PLACED
        smaller = option + 1 < last and OI[Option.TYPE, option + 1] == kind and OI[Option.GPUS, option + 1] < need
        if smaller and rules.switch[Switch.MISFIT] != _SHRINK and not q.promises:  # smaller options are for the shrink rule only
            break
    return _FRAGMENTED if fragmented else (_PRIORITY if rules.switch[Switch.PREEMPT] == 1 else _RESOURCES)


@kernel
def _make_way(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, q: QuotaNotes, row: int, option: int, now: float) -> int:
    """Stop gangs until the row has a place and its limits allow it, and give those their devices back that are not needed for that.

    Returns how many nodes it gets; 0: none, and nothing has changed.
    """
    number, b, I = notes.number, q.books, t.I
    kind, need = t.OI[Option.TYPE, option], t.OI[Option.GPUS, option]
    if not _may_suffice(t, lists, rules, notes, q, row, kind, need, now):
        return 0
    first, used = number[Walk.VICTIMS], 0
    while used == 0:
        other = _next_victim(t, lists, rules, notes, q, row, kind, need, now)
        if other < 0:
            break
        mine = b.domain[I[Job.QUEUE, other]] == b.domain[I[Job.QUEUE, row]]
        q.why[number[Walk.VICTIMS]] = _PREEMPTED if mine else _QUOTA
        evict(t, notes, other)
        count_in(b, I[Job.QUEUE, other], I[Job.USER, other], -float(I[Job.HELD, other]))
        used = _fits(t, rules, notes, q, row, option)
    for v in range(number[Walk.VICTIMS] - (2 if used > 0 else 1), first - 1, -1):
        _go_on(t, notes, q, v)
        if used > 0 and _fits(t, rules, notes, q, row, option) == 0:
            _take_away(t, notes, q, v)
    _drop_spared(t, notes, q, first)
    if used == 0:
        return 0
    _forget_tried(notes, q)
    return _fits(t, rules, notes, q, row, option)


@kernel
def _go_on(t: Matrices, notes: Notes, q: QuotaNotes, v: int) -> None:
    """A victim has its devices again."""
    I, row = t.I, notes.victim[v]
    restore(t, notes, v)
    I[Job.FLAGS, row] = 0
    notes.free[t.OI[Option.TYPE, notes.option[v]]] -= I[Job.HELD, row]
    count_in(q.books, I[Job.QUEUE, row], I[Job.USER, row], float(I[Job.HELD, row]))


@kernel
def _take_away(t: Matrices, notes: Notes, q: QuotaNotes, v: int) -> None:
    """It is needed after all."""
    I, row = t.I, notes.victim[v]
    give_back(t, row)
    I[Job.FLAGS, row] = v + 1
    notes.free[t.OI[Option.TYPE, notes.option[v]]] += I[Job.HELD, row]
    count_in(q.books, I[Job.QUEUE, row], I[Job.USER, row], -float(I[Job.HELD, row]))


@kernel
def _drop_spared(t: Matrices, notes: Notes, q: QuotaNotes, first: int) -> None:
    """Of the victims from `first` on only those are remembered that stop."""
    number, kept = notes.number, first
    saved = notes.offset[first] if number[Walk.VICTIMS] > first else number[Walk.SAVED]
    for v in range(first, number[Walk.VICTIMS]):
        row = notes.victim[v]
        if t.I[Job.FLAGS, row] == 0:
            continue
        at = notes.offset[v]
        notes.victim[kept], notes.option[kept], notes.node[kept], q.why[kept] = row, notes.option[v], notes.node[v], q.why[v]
        notes.offset[kept] = saved
        for k in range(t.I[Job.HELD, row]):
            notes.saved[saved + k] = notes.saved[at + k]
        t.I[Job.FLAGS, row] = kept + 1
        saved += t.I[Job.HELD, row]
        kept += 1
    number[Walk.VICTIMS], number[Walk.SAVED] = kept, saved


@kernel
def _fits(t: Matrices, rules: EngineRules, notes: Notes, q: QuotaNotes, row: int, option: int) -> int:
    """On how many nodes the row finds a place within its limits; 0: it does not."""
    need = t.OI[Option.GPUS, option]
    if need > notes.free[t.OI[Option.TYPE, option]] or not within_limits(q.books, t.I[Job.QUEUE, row], t.I[Job.USER, row], float(need)):
        return 0
    return int(find_place(t, rules, row, option, False, notes.nodes, notes.counts))


@kernel
def _may_suffice(
    t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, q: QuotaNotes, row: int, kind: int, need: int, now: float
) -> bool:
    """Whether all that could give way would leave devices enough; where they sit is not looked at."""
    reach = notes.free[kind]
    found = False
    for k in range(lists.number[RowCount.RUNNING]):
        other = lists.running[k]
        if _yields(t, rules, q, row, need, other, now):
            found = True
            reach += t.I[Job.HELD, other] if t.OI[Option.TYPE, t.I[Job.OPTION, other]] == kind else 0
            if reach >= need:
                return True
    return found and reach >= need


@kernel
def _yields(t: Matrices, rules: EngineRules, q: QuotaNotes, row: int, need: int, other: int, now: float) -> bool:
    """Whether a gang that runs may be stopped for a row that waits."""
    I, b = t.I, q.books
    if I[Job.FLAGS, other] != 0 or not movable(t.F, I, other, now, rules.amount[Amount.MIN_RUN]):
        return False
    if b.domain[I[Job.QUEUE, other]] != b.domain[I[Job.QUEUE, row]]:
        return gives_way(b, I[Job.QUEUE, row], float(need), I[Job.QUEUE, other], float(I[Job.HELD, other]))
    if q.promises or rules.switch[Switch.PREEMPT] == 0 or not before(t.F, row, other):
        return False
    return rules.switch[Switch.LEAST_LOST] == 0 or not was_spared(t.F, I, row, other)


@kernel
def _next_victim(
    t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, q: QuotaNotes, row: int, kind: int, need: int, now: float
) -> int:
    """Who stops next: one of another queue, of the one that has borrowed most; else one of the row's own; -1: nobody."""
    I, b = t.I, q.books
    own, found, most = -1, -1, -np.inf
    free = within_limits(b, I[Job.QUEUE, row], I[Job.USER, row], float(need))
    for k in range(lists.number[RowCount.RUNNING] - 1, -1, -1):
        other = notes.order[k] if rules.switch[Switch.LEAST_LOST] == 1 else lists.running[k]
        if not _yields(t, rules, q, row, need, other, now):
            continue
        if free and (t.OI[Option.TYPE, I[Job.OPTION, other]] != kind or not leaves_some(t, other)):
            continue  # its devices cannot help
        domain = b.domain[I[Job.QUEUE, other]]
        if domain == b.domain[I[Job.QUEUE, row]]:
            own = other if own < 0 else own
        else:
            borrowed = share(b, domain, 0.0)
            if borrowed > most:
                found, most = other, borrowed
    return int(found if found >= 0 else own)
