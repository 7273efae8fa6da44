"""A future from an instant to its end: the six steps where devices are only counted. A batch is one call."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.agenda import next_instant, next_look
from gantline.engine.declared_key import Coefficient
from gantline.engine.drivers.futures.keys import key_of_waiting, next_level, rank_running, slope
from gantline.engine.drivers.futures.places import (
    COUNTERS,
    MOST_DECISIONS,
    ROW_NUMBERS,
    FutureAmount,
    FutureCase,
    FutureCount,
    FutureLane,
    FutureRoom,
    FutureRow,
    FutureRun,
    FutureSwitch,
    FutureTime,
    Newcomer,
    RowWhole,
    Slot,
)
from gantline.engine.drivers.futures.walk import enter, finish_due, key_behind, run_on, walk


@kernel
def begin(case: FutureCase, room: FutureRoom, work: Floats, coming: Floats, begins: Floats, ends: Floats) -> None:
    """Everything as it is at the instant, with this much work."""
    jobs, more = case.f.shape[1], coming.shape[1]
    f, i, n = room.f, room.i, room.n
    for number in range(ROW_NUMBERS):
        for row in range(jobs):
            f[number, row] = case.f[number, row]
    for row in range(jobs):
        f[FutureRow.WORK, row] = max(work[row], case.f[FutureRow.WORK, row])  # no less than what has been done
        i[RowWhole.NEED, row], i[RowWhole.LANE, row] = case.i[RowWhole.NEED, row], case.i[RowWhole.LANE, row]
        begins[row] = ends[row] = np.inf
    for place in range(more):
        row = jobs + place
        for number in range(ROW_NUMBERS):
            f[number, row] = 0.0
        f[FutureRow.WORK, row], f[FutureRow.ESTIMATE, row] = coming[Newcomer.WORK, place], coming[Newcomer.ESTIMATE, place]
        f[FutureRow.ARRIVAL, row], f[FutureRow.PRIORITY, row], f[FutureRow.FIRST, row] = (
            coming[Newcomer.ARRIVAL, place],
            coming[Newcomer.PRIORITY, place],
            np.nan,
        )
        i[RowWhole.NEED, row], i[RowWhole.LANE, row] = int(coming[Newcomer.NEED, place]), 0
        while case.size[i[RowWhole.LANE, row]] < i[RowWhole.NEED, row]:
            i[RowWhole.LANE, row] += 1
    for number in range(COUNTERS):
        n[number] = 0
    n[FutureCount.FREE], n[FutureCount.NEXT], n[FutureCount.LEFT] = case.switch[FutureSwitch.DEVICES], case.held.shape[0], jobs
    for lane in range(case.size.shape[0]):
        room.lane[FutureLane.HEAD, lane], room.lane[FutureLane.COUNT, lane] = 0, case.waits[lane]
        n[FutureCount.WAITING] += case.waits[lane]
        n[FutureCount.DEMAND] += case.waits[lane] * case.size[lane]
        for place in range(case.waits[lane]):
            room.queue[lane, place] = case.queue[lane, place]
    room.t[FutureTime.SOONEST] = room.t[FutureTime.HIGHEST] = np.inf
    for place in range(case.running.shape[0]):
        row = case.running[place]
        begins[row] = case.amount[FutureAmount.START_NOW]
        run_on(room, row, case.runs[FutureRun.SINCE, place], case.runs[FutureRun.RATE, place], case.runs[FutureRun.BEGAN, place])
        n[FutureCount.FREE] -= i[RowWhole.NEED, row]
        n[FutureCount.DEMAND] += i[RowWhole.NEED, row]
    room.t[FutureTime.NOW] = room.t[FutureTime.WAKE] = case.amount[FutureAmount.START_NOW]
    room.t[FutureTime.LAST_DECISION] = -1.0


@kernel
def _entrant(case: FutureCase, number: int) -> int:
    """The row that is let in as the `number`-th: those that were held back at the instant, then newcomers."""
    held = case.held.shape[0]
    return int(case.held[number]) if number < held else int(case.f.shape[1] + number - held)


@kernel
def _see_arrivals(case: FutureCase, room: FutureRoom, now: float, entrants: int, ends: Floats) -> None:
    """Whatever is submitted within a round makes the engine look at those that run, at that instant: estimates may prove too low then."""
    number = room.n[FutureCount.NEXT]
    while number < entrants and room.f[FutureRow.ARRIVAL, _entrant(case, number)] <= now:
        finish_due(case, room, room.f[FutureRow.ARRIVAL, _entrant(case, number)], ends)
        number += 1


@kernel
def _let_in(case: FutureCase, room: FutureRoom, now: float, entrants: int) -> None:
    """Rows that have arrived by `now` wait: all of them, or in order while demand is within the limit."""
    n = room.n
    while n[FutureCount.NEXT] < entrants and room.f[FutureRow.ARRIVAL, _entrant(case, n[FutureCount.NEXT])] <= now:
        n[FutureCount.NEXT] += 1
    n[FutureCount.ADMITTED] = 0
    while n[FutureCount.HELD] < n[FutureCount.NEXT] and n[FutureCount.DEMAND] <= case.amount[FutureAmount.LOAD_LIMIT]:
        row = _entrant(case, n[FutureCount.HELD])
        n[FutureCount.HELD] += 1
        n[FutureCount.ADMITTED] += 1
        n[FutureCount.DEMAND] += room.i[RowWhole.NEED, row]
        room.f[FutureRow.KEY, row] = key_of_waiting(case, room.f, room.i, row)
        enter(room, row)


@kernel
def _next_change(case: FutureCase, room: FutureRoom, now: float, enough: float) -> float:
    """The first instant at which a gang that runs might fall behind one that waits, or any such instant up to `enough`."""
    rank_running(case, room, now)
    soonest = np.inf
    for at in range(room.n[FutureCount.RUNNING]):
        rise = slope(case, room, at)
        if rise <= 0.0:
            continue
        key = room.s[FutureRow.KEY, at]
        behind = key_behind(case, room, key, room.si[Slot.ROW, at])
        if behind < np.inf:
            soonest = min(soonest, now + (behind - key) / rise)
            if soonest <= enough:
                break
    return float(max(soonest, now))


@kernel
def _next_wake(case: FutureCase, room: FutureRoom, now: float) -> float:
    """When to look again although nothing comes from outside."""
    n, length, quantum = room.n, case.amount[FutureAmount.ROUND], case.amount[FutureAmount.QUANTUM]
    wake = room.t[FutureTime.SOONEST]
    if n[FutureCount.WAITING] > 0 and case.switch[FutureSwitch.PREEMPT] == 1:
        if case.weight[Coefficient.MOVES] == 1.0:
            change = np.inf
            if case.switch[FutureSwitch.RISES] == 1:
                enough = now + length if length > 0.0 else next_look(now, now, quantum)
                change = _next_change(case, room, now, enough)
            level = next_level(case, room, now)
            if length == 0.0:
                change = next_look(change, now, quantum)
                if level <= now:
                    level = next_look(now, now, quantum)
            wake = min(wake, min(change, level))
        if case.amount[FutureAmount.MIN_RUN] > 0.0:
            for at in range(n[FutureCount.RUNNING]):
                movable = room.s[FutureRow.BEGAN, at] + case.amount[FutureAmount.MIN_RUN]
                if now < movable < wake:
                    wake = movable
    if n[FutureCount.HELD] < n[FutureCount.NEXT] and length > 0.0 and n[FutureCount.ADMITTED] > 0:
        wake = min(wake, now + length)
    return float(wake)


@kernel
def run_future(case: FutureCase, room: FutureRoom, work: Floats, coming: Floats, begins: Floats, ends: Floats) -> None:
    """One future to its end; `begins` and `ends` say when each job first gets devices and when it ends (infinity: it does not)."""
    begin(case, room, work, coming, begins, ends)
    n, t, length = room.n, room.t, case.amount[FutureAmount.ROUND]
    entrants = case.held.shape[0] + coming.shape[1]
    while n[FutureCount.LEFT] > 0:
        # 1. the next instant: an arrival, a finish, or a change of order
        due = t[FutureTime.WAKE]
        if n[FutureCount.NEXT] < entrants:
            due = min(due, room.f[FutureRow.ARRIVAL, _entrant(case, n[FutureCount.NEXT])])
        if due == np.inf:
            return
        now = next_instant(due, t[FutureTime.NOW], length, t[FutureTime.LAST_DECISION] >= 0.0, False)
        if now > case.amount[FutureAmount.UNTIL]:
            if case.switch[FutureSwitch.BOUNDARY] == 0:
                finish_due(case, room, case.amount[FutureAmount.UNTIL], ends)
            return
        t[FutureTime.NOW] = t[FutureTime.LAST_DECISION] = now
        # 2. what has ended, 3. what has arrived
        if length > 0.0 and case.switch[FutureSwitch.BOUNDARY] == 0:
            _see_arrivals(case, room, now, entrants, ends)
        finish_due(case, room, now, ends)
        _let_in(case, room, now, entrants)
        # 4. order, 5. walk
        n[FutureCount.OLD], n[FutureCount.RANKED] = n[FutureCount.RUNNING], 0
        if n[FutureCount.WAITING] > 0:
            n[FutureCount.DECISIONS] += 1
            if n[FutureCount.DECISIONS] > MOST_DECISIONS:
                return
            walk(case, room, now, begins)
        # 6. when to look again
        t[FutureTime.WAKE] = _next_wake(case, room, now)


@kernel
def run_batch(case: FutureCase, room: FutureRoom, work: Floats, coming: Floats, begins: Floats, ends: Floats, decisions: Floats) -> None:
    """A future for each line of `work`, with the newcomers of that line."""
    for future in range(work.shape[0]):
        run_future(case, room, work[future], coming[future], begins[future], ends[future])
        decisions[future] = float(room.n[FutureCount.DECISIONS])
