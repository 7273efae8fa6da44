"""The whole loop inside one compiled function, for policies that declare their key as linear.

It calls the very kernels that the stepping loop calls (finish, arrive, sort, walk); what it adds is the key itself and the next instant at
which the order can change. A test holds it against the stepping loop with the policy's Python `key()`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.gather import elapsed
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING
from gantline.core.tables import Matrices
from gantline.drivers import loop_clock as lc
from gantline.drivers.loop_clock import CUT, DONE, NEED_LOG, LoopClock
from gantline.engine import declared_key as k
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.advance import arrive, finish_due, next_finish, next_look, next_movable
from gantline.engine.lists import Lists
from gantline.engine.log import DEVICES, INTERVALS, LogColumns
from gantline.engine.ranks import insert_waiting, sort_rows
from gantline.engine.settings import EngineRules
from gantline.engine.walk import walk


class Declared(NamedTuple):
    """A key as its policy declares it: see `engine.declared_key`."""

    coefficient: Floats
    thresholds: Floats


@kernel
def _key(F: Floats, I: Ints, row: int, now: float, declared: Declared) -> float:
    """The rank of a row."""
    K, thresholds = declared.coefficient, declared.thresholds
    dt = elapsed(F, I, row, now)
    service = F[c.SERVICE, row] + dt
    gputime = F[c.GPUTIME, row] + I[c.HELD, row] * dt
    remaining = max(0.0, F[c.ESTIMATE, row] - (F[c.DONE, row] + F[c.RATE, row] * dt))
    key = (
        K[k.ARRIVAL] * F[c.ARRIVAL, row]
        + K[k.ATTAINED] * service
        + K[k.ATTAINED_GPU] * gputime
        + K[k.REMAINING] * remaining
        + K[k.REMAINING_GPU] * (remaining * I[c.GPUS, row])
        + K[k.ESTIMATE] * F[c.ESTIMATE, row]
        + K[k.GPUS] * I[c.GPUS, row]
        + K[k.PRIORITY] * F[c.PRIORITY, row]
    )
    if K[k.FIRST_START] != 0.0:
        first = F[c.FIRST_START, row]
        key += K[k.FIRST_START] * (K[k.NEVER_STARTED] + F[c.ARRIVAL, row] if np.isnan(first) else first)
    level = 0
    measure = gputime if K[k.BY_GPU] == 1.0 else service
    for place in range(thresholds.shape[0]):
        if measure >= thresholds[place]:
            level += 1
    return float(level * K[k.LEVEL_STEP] + key)


@kernel
def _slope(F: Floats, I: Ints, row: int, K: Floats) -> float:
    """How fast the key of a row moves."""
    if I[c.PHASE, row] != RUNNING:
        return 0.0
    shrinking = F[c.RATE, row] * (K[k.REMAINING] + K[k.REMAINING_GPU] * I[c.GPUS, row])
    return float(K[k.ATTAINED] + K[k.ATTAINED_GPU] * I[c.HELD, row] - shrinking)


@kernel
def _rank_new(F: Floats, I: Ints, lists: Lists, now: float, declared: Declared) -> None:
    """Put the rows that were just let in, which stand last, where they belong."""
    fresh = lists.number[ls.ADMITTED]
    first = lists.number[ls.WAITING] - fresh
    last = lists.number[ls.WAITING]
    lists.number[ls.WAITING] = first
    for place in range(first, last):  # inserting shifts only what lies before, so the rest of the tail stays readable
        row = lists.waiting[place]
        lists.demand[I[c.SMALLEST, row]] -= 1
        F[c.KEY, row] = _key(F, I, row, now, declared)
        insert_waiting(F, I, lists, row)


@kernel
def rank_waiting(F: Floats, I: Ints, lists: Lists, now: float, declared: Declared) -> None:
    """Put those who wait in order, where nobody has ranked them yet: a run that begins in the middle."""
    for place in range(lists.number[ls.WAITING]):
        F[c.KEY, lists.waiting[place]] = _key(F, I, lists.waiting[place], now, declared)
    sort_rows(F, lists.waiting, lists.number[ls.WAITING])


@kernel
def _next_change(F: Floats, I: Ints, lists: Lists, now: float, K: Floats, enough: float) -> float:
    """The first instant at which a row that runs might fall behind one that waits, or any such instant up to `enough`.

    Those who wait keep their keys, so only running rows count, and those that move up gain nothing by being looked at again. `running`
    may hold rows that have just started, behind those that were ranked, so each is held against its neighbour by binary search.
    """
    soonest, running, waiting = np.inf, lists.running, lists.waiting
    n_wait = lists.number[ls.WAITING]
    if n_wait == 0:
        return soonest
    for p in range(lists.number[ls.RUNNING]):
        row = running[p]
        slope = _slope(F, I, row, K)
        key = F[c.KEY, row]
        if slope <= 0.0 or F[c.KEY, waiting[n_wait - 1]] < key:
            continue
        low, high = 0, n_wait  # first waiting row that ranks behind this one
        if F[c.KEY, waiting[0]] > key:
            high = 0
        while low < high:
            middle = (low + high) // 2
            other = waiting[middle]
            if F[c.KEY, other] < key or (F[c.KEY, other] == key and other < row):
                low = middle + 1
            else:
                high = middle
        if low < n_wait:
            soonest = min(soonest, now + (F[c.KEY, waiting[low]] - key) / slope)
            if soonest <= enough:  # the next look is at `enough` at the earliest, so it does not matter which comes first
                break
    return max(soonest, now)


@kernel
def _next_level(F: Floats, I: Ints, lists: Lists, now: float, declared: Declared) -> float:
    """The first instant at which a row that runs reaches its next threshold."""
    soonest, thresholds = np.inf, declared.thresholds
    if thresholds.shape[0] == 0:
        return soonest
    by_gpu = declared.coefficient[k.BY_GPU] == 1.0
    for p in range(lists.number[ls.RUNNING]):
        row = lists.running[p]
        speed = float(I[c.HELD, row]) if by_gpu else 1.0
        have = F[c.GPUTIME, row] if by_gpu else F[c.SERVICE, row]
        dt = elapsed(F, I, row, now)
        for place in range(thresholds.shape[0]):
            if have + speed * dt < thresholds[place] and speed > 0.0:
                soonest = min(soonest, F[c.SINCE, row] + (thresholds[place] - have) / speed)
                break
    return soonest


@kernel
def run_linear(
    t: Matrices, lists: Lists, rules: EngineRules, log: LogColumns, scratch: Ints, out: Ints, declared: Declared, clock: LoopClock
) -> int:
    """Run until everything has ended (or a bound is reached); comes back early when the log is full."""
    F, I, running, K, time, count = t.F, t.I, lists.running, declared.coefficient, clock.time, clock.number
    rows = F.shape[1]
    devices = t.D.shape[1]
    length = time[lc.ROUND]
    while True:
        intervals = log.written[INTERVALS] + devices + lists.number[ls.ACTIVE] + 64
        if intervals > log.entry.shape[1] or log.written[DEVICES] + 4 * devices + 64 > log.device.shape[0]:
            return NEED_LOG
        # 1. the next instant: an arrival, a finish, or a change of order
        due = time[lc.WAKE]
        if lists.number[ls.NEXT] < rows:
            due = min(due, F[c.ARRIVAL, lists.number[ls.NEXT]])
        if due == np.inf:
            return DONE
        if length > 0.0:
            boundary = max(0.0, np.ceil(due / length - 1e-9)) * length
            now = max(boundary, time[lc.NOW] + length) if time[lc.LAST_DECISION] >= 0.0 else boundary
            if time[lc.STEP_ALL] == 1.0 and time[lc.LAST_DECISION] >= 0.0:
                now = time[lc.NOW] + length
            now = np.round(now / length) * length
        else:
            now = max(due, time[lc.NOW])
        if now > time[lc.UNTIL]:
            return CUT
        time[lc.NOW] = now
        time[lc.LAST_DECISION] = now
        # 2. who has finished, 3. who has arrived
        finish_due(t, lists, now, rules, log)
        arrive(F, I, lists, now, time[lc.LOAD_LIMIT])
        _rank_new(F, I, lists, now, declared)
        if count[lc.TRACK_HIGH] >= 0 and lists.number[ls.FINISHED] > 0:
            left = 0
            for row in range(count[lc.TRACK_LOW], count[lc.TRACK_HIGH]):
                if np.isnan(F[c.FINISH, row]):
                    left = 1
                    break
            if left == 0:
                return DONE
        # 4. order, 5. walk; nothing to decide while nobody waits. Keys of those who wait do not move
        if lists.number[ls.WAITING] > 0:
            count[lc.DECISIONS] += 1
            for p in range(lists.number[ls.RUNNING]):
                F[c.KEY, running[p]] = _key(F, I, running[p], now, declared)
            sort_rows(F, running, lists.number[ls.RUNNING])
            walk(t, lists, now, rules, log, scratch, out)
            count[lc.STARTED] += out[0]
            count[lc.STOPPED] += out[1]
        # 6. when to look again
        wake = next_finish(F, I, lists)
        if lists.number[ls.WAITING] > 0 and rules.switch[s.S_PREEMPT] == 1:
            if K[k.MOVES] == 1.0:
                enough = now + length if length > 0.0 else next_look(now, now, time[lc.QUANTUM])
                change = _next_change(F, I, lists, now, K, enough)
                level = _next_level(F, I, lists, now, declared)
                if length == 0.0:
                    change = next_look(change, now, time[lc.QUANTUM])
                    if level <= now:
                        level = next_look(now, now, time[lc.QUANTUM])
                wake = min(wake, min(change, level))
            wake = min(wake, next_movable(F, lists, now, rules.amount[s.S_MIN_RUN]))
        if lists.number[ls.HELD] < lists.number[ls.NEXT] and length > 0.0 and lists.number[ls.ADMITTED] > 0:
            wake = min(wake, now + length)
        time[lc.WAKE] = wake
