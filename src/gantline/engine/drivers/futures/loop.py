"""A future from an instant to its end: the six steps where devices are only counted. A batch is one call."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine import declared_key as k
from gantline.engine.agenda import next_instant, next_look
from gantline.engine.drivers.futures import places as p
from gantline.engine.drivers.futures.gangs import finish_due, run_on
from gantline.engine.drivers.futures.keys import key_of_waiting, next_level, rank_running, slope
from gantline.engine.drivers.futures.lanes import enter, key_behind
from gantline.engine.drivers.futures.places import FutureCase, FutureRoom
from gantline.engine.drivers.futures.walk import walk


@kernel
def begin(case: FutureCase, room: FutureRoom, work: Floats, coming: Floats, begins: Floats, ends: Floats) -> None:
    """Everything as it is at the instant, with this much work."""
    jobs, more = case.f.shape[1], coming.shape[1]
    f, i, n = room.f, room.i, room.n
    for number in range(p.ROW_NUMBERS):
        for row in range(jobs):
            f[number, row] = case.f[number, row]
    for row in range(jobs):
        f[p.WORK, row] = max(work[row], case.f[p.WORK, row])  # no less than what has been done
        i[p.NEED, row], i[p.LANE, row] = case.i[p.NEED, row], case.i[p.LANE, row]
        begins[row] = ends[row] = np.inf
    for place in range(more):
        row = jobs + place
        for number in range(p.ROW_NUMBERS):
            f[number, row] = 0.0
        f[p.WORK, row], f[p.ESTIMATE, row] = coming[p.C_WORK, place], coming[p.C_ESTIMATE, place]
        f[p.ARRIVAL, row], f[p.PRIORITY, row], f[p.FIRST, row] = coming[p.C_ARRIVAL, place], coming[p.C_PRIORITY, place], np.nan
        i[p.NEED, row], i[p.LANE, row] = int(coming[p.C_NEED, place]), 0
        while case.size[i[p.LANE, row]] < i[p.NEED, row]:
            i[p.LANE, row] += 1
    for number in range(p.COUNTERS):
        n[number] = 0
    n[p.FREE], n[p.NEXT], n[p.LEFT] = case.switch[p.DEVICES], case.held.shape[0], jobs
    for lane in range(case.size.shape[0]):
        room.lane[p.HEAD, lane], room.lane[p.COUNT, lane] = 0, case.waits[lane]
        n[p.WAITING] += case.waits[lane]
        n[p.DEMAND] += case.waits[lane] * case.size[lane]
        for place in range(case.waits[lane]):
            room.queue[lane, place] = case.queue[lane, place]
    room.t[p.SOONEST] = room.t[p.HIGHEST] = np.inf
    for place in range(case.running.shape[0]):
        row = case.running[place]
        begins[row] = case.amount[p.START_NOW]
        run_on(room, row, case.runs[p.RUN_SINCE, place], case.runs[p.RUN_RATE, place], case.runs[p.RUN_BEGAN, place])
        n[p.FREE] -= i[p.NEED, row]
        n[p.DEMAND] += i[p.NEED, row]
    room.t[p.NOW] = room.t[p.WAKE] = case.amount[p.START_NOW]
    room.t[p.LAST_DECISION] = -1.0


@kernel
def _entrant(case: FutureCase, number: int) -> int:
    """The row that is let in as the `number`-th: those that were held back at the instant, then newcomers."""
    held = case.held.shape[0]
    return int(case.held[number]) if number < held else int(case.f.shape[1] + number - held)


@kernel
def _see_arrivals(case: FutureCase, room: FutureRoom, now: float, entrants: int, ends: Floats) -> None:
    """Whatever is submitted within a round makes the engine look at those that run, at that instant: estimates may prove too low then."""
    number = room.n[p.NEXT]
    while number < entrants and room.f[p.ARRIVAL, _entrant(case, number)] <= now:
        finish_due(case, room, room.f[p.ARRIVAL, _entrant(case, number)], ends)
        number += 1


@kernel
def _let_in(case: FutureCase, room: FutureRoom, now: float, entrants: int) -> None:
    """Rows that have arrived by `now` wait: all of them, or in order while demand is within the limit."""
    n = room.n
    while n[p.NEXT] < entrants and room.f[p.ARRIVAL, _entrant(case, n[p.NEXT])] <= now:
        n[p.NEXT] += 1
    n[p.ADMITTED] = 0
    while n[p.HELD] < n[p.NEXT] and n[p.DEMAND] <= case.amount[p.LOAD_LIMIT]:
        row = _entrant(case, n[p.HELD])
        n[p.HELD] += 1
        n[p.ADMITTED] += 1
        n[p.DEMAND] += room.i[p.NEED, row]
        room.f[p.KEY, row] = key_of_waiting(case, room.f, room.i, row)
        enter(room, row)


@kernel
def _next_change(case: FutureCase, room: FutureRoom, now: float, enough: float) -> float:
    """The first instant at which a gang that runs might fall behind one that waits, or any such instant up to `enough`."""
    rank_running(case, room, now)
    soonest = np.inf
    for at in range(room.n[p.RUNNING]):
        rise = slope(case, room, at)
        if rise <= 0.0:
            continue
        key = room.s[p.KEY, at]
        behind = key_behind(case, room, key, room.si[p.SLOT_ROW, at])
        if behind < np.inf:
            soonest = min(soonest, now + (behind - key) / rise)
            if soonest <= enough:
                break
    return float(max(soonest, now))


@kernel
def _next_wake(case: FutureCase, room: FutureRoom, now: float) -> float:
    """When to look again although nothing comes from outside."""
    n, length, quantum = room.n, case.amount[p.ROUND], case.amount[p.QUANTUM]
    wake = room.t[p.SOONEST]
    if n[p.WAITING] > 0 and case.switch[p.PREEMPT] == 1:
        if case.weight[k.MOVES] == 1.0:
            change = np.inf
            if case.switch[p.RISES] == 1:
                enough = now + length if length > 0.0 else next_look(now, now, quantum)
                change = _next_change(case, room, now, enough)
            level = next_level(case, room, now)
            if length == 0.0:
                change = next_look(change, now, quantum)
                if level <= now:
                    level = next_look(now, now, quantum)
            wake = min(wake, min(change, level))
        if case.amount[p.MIN_RUN] > 0.0:
            for at in range(n[p.RUNNING]):
                movable = room.s[p.BEGAN, at] + case.amount[p.MIN_RUN]
                if now < movable < wake:
                    wake = movable
    if n[p.HELD] < n[p.NEXT] and length > 0.0 and n[p.ADMITTED] > 0:
        wake = min(wake, now + length)
    return float(wake)


@kernel
def run_future(case: FutureCase, room: FutureRoom, work: Floats, coming: Floats, begins: Floats, ends: Floats) -> None:
    """One future to its end; `begins` and `ends` say when each job first gets devices and when it ends (infinity: it does not)."""
    begin(case, room, work, coming, begins, ends)
    n, t, length = room.n, room.t, case.amount[p.ROUND]
    entrants = case.held.shape[0] + coming.shape[1]
    while n[p.LEFT] > 0:
        # 1. the next instant: an arrival, a finish, or a change of order
        due = t[p.WAKE]
        if n[p.NEXT] < entrants:
            due = min(due, room.f[p.ARRIVAL, _entrant(case, n[p.NEXT])])
        if due == np.inf:
            return
        now = next_instant(due, t[p.NOW], length, t[p.LAST_DECISION] >= 0.0, False)
        if now > case.amount[p.UNTIL]:
            if case.switch[p.BOUNDARY] == 0:
                finish_due(case, room, case.amount[p.UNTIL], ends)
            return
        t[p.NOW] = t[p.LAST_DECISION] = now
        # 2. what has ended, 3. what has arrived
        if length > 0.0 and case.switch[p.BOUNDARY] == 0:
            _see_arrivals(case, room, now, entrants, ends)
        finish_due(case, room, now, ends)
        _let_in(case, room, now, entrants)
        # 4. order, 5. walk
        n[p.OLD], n[p.RANKED] = n[p.RUNNING], 0
        if n[p.WAITING] > 0:
            n[p.DECISIONS] += 1
            if n[p.DECISIONS] > p.MOST_DECISIONS:
                return
            walk(case, room, now, begins)
        # 6. when to look again
        t[p.WAKE] = _next_wake(case, room, now)


@kernel
def run_batch(case: FutureCase, room: FutureRoom, work: Floats, coming: Floats, begins: Floats, ends: Floats, decisions: Floats) -> None:
    """A future for each line of `work`, with the newcomers of that line."""
    for future in range(work.shape[0]):
        run_future(case, room, work[future], coming[future], begins[future], ends[future])
        decisions[future] = float(room.n[p.DECISIONS])
