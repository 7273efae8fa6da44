"""The loop of declared keys on records: every step costs what changed, not what runs or waits.

The same steps and the same outcome as `linear_loop`, which remains for what this one does not know (several types, CPUs, rare placements).
Finishes and levels come from heaps, ranks from a heap that need not be touched while keys keep their order, those who wait from lanes.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.jit import variant
from gantline.core.phases import HELD_BACK, PENDING
from gantline.core.reasons import Reason
from gantline.drivers import loop_clock as lc
from gantline.drivers.loop_clock import CUT, DONE, NEED_LOG, LoopClock
from gantline.engine import declared_key as k
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.advance import next_look
from gantline.engine.dense import low_ranks as w
from gantline.engine.dense import records as r
from gantline.engine.dense.backfill import INSTANT, Promises, fill_gaps
from gantline.engine.dense.devices import Devices
from gantline.engine.dense.gangs import LoopLog, LoopSetting, complete, next_due, set_due
from gantline.engine.dense.heap import DUE, LEVEL, RANK, Heaps, drop, first, put
from gantline.engine.dense.keys import Key, key_at, key_of, next_level, slope
from gantline.engine.dense.low_ranks import Pass, rank_key
from gantline.engine.dense.queues import Lanes, enter, key_behind
from gantline.engine.dense.records import Records
from gantline.engine.dense.walk import walk, walk_without_stops

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)
PREEMPTS, PROMISES = True, False  # whether gangs may be stopped, whether there is backfilling; known when it is compiled (`variant`)
DEMAND = 7  # one more place of `number`, whose others are those of `engine.lists`: devices that those inside ask for


@kernel
def finish(
    jobs: Records, h: Heaps, ds: Devices, log: LoopLog, setting: LoopSetting, key: Key, work: Pass, number: Ints, now: float
) -> None:
    """Complete every gang whose work is done by `now`, and raise estimates that turned out too low."""
    f = jobs.f
    number[ls.FINISHED] = 0
    while (next_due(jobs, h) if PREEMPTS else first(h, DUE)) <= now:
        row = h.row[DUE, 0]
        at = f[row, r.SINCE] + (f[row, r.WORK] - f[row, r.DONE]) / f[row, r.RATE]
        if at <= now:
            complete(jobs, h, ds, log, row, now if setting.SI[s.S_BOUNDARY] == 1 else at)
            number[ls.ACTIVE] -= 1
            number[DEMAND] -= jobs.i[row, r.NEED]
            number[ls.FINISHED] += 1
            continue
        # its estimate was too low. Mean residual life of a heavy tail: as long again
        f[row, r.ESTIMATE] = 2.0 * (f[row, r.DONE] + f[row, r.RATE] * max(0.0, now - f[row, r.SINCE]))
        set_due(jobs, h, row)
        put(h, DUE, row, f[row, r.DUE])  # later than it stood; else it would stay on top, and be looked at for ever
        if PREEMPTS:
            put(h, RANK, row, rank_key(jobs, row, key, work, now))


@kernel
def let_in(jobs: Records, number: Ints, now: float, load_limit: float) -> None:
    """Let rows in that have arrived by `now`: all of them, or in order while demand is within the limit (GPUs)."""
    f, i = jobs.f, jobs.i
    rows = f.shape[0]
    while number[ls.NEXT] < rows and f[number[ls.NEXT], r.ARRIVAL] <= now:
        row = number[ls.NEXT]
        number[ls.NEXT] += 1
        i[row, r.STATE] = HELD_BACK
        i[row, r.WHY] = _LOAD_LIMIT
        f[row, r.SINCE] = f[row, r.ARRIVAL]
    number[ls.ADMITTED] = 0
    while number[ls.HELD] < number[ls.NEXT] and number[DEMAND] <= load_limit:
        row = number[ls.HELD]
        number[ls.HELD] += 1
        number[DEMAND] += i[row, r.NEED]
        number[ls.ACTIVE] += 1
        number[ls.ADMITTED] += 1
        i[row, r.STATE] = PENDING
        i[row, r.WHY] = _ARRIVED
        f[row, r.ADMITTED] = now


@kernel
def _arrive(jobs: Records, qs: Lanes, key: Key, number: Ints, now: float, load_limit: float) -> None:
    """Newcomers stand in their lanes."""
    let_in(jobs, number, now, load_limit)
    f = jobs.f
    for row in range(number[ls.HELD] - number[ls.ADMITTED], number[ls.HELD]):
        f[row, r.KEY] = key_of(jobs, row, key, 0.0)
        enter(qs, jobs.i[row, r.LANE], f[row, r.KEY], row, max(f[row, r.ESTIMATE], INSTANT))


@kernel
def _change_levels(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> None:
    """Rank those anew who have reached a level, or are so close to it that only the exact sum can tell."""
    until = now + 1e-6 + 4e-15 * now
    count = 0
    while h.size[LEVEL] > 0 and h.key[LEVEL, 0] <= until:
        row = h.row[LEVEL, 0]
        drop(h, LEVEL, row)
        work.line[w.BEGUN, count] = row
        count += 1
    for place in range(count):
        row = work.line[w.BEGUN, place]
        put(h, LEVEL, row, next_level(jobs, row, key, now))
        put(h, RANK, row, rank_key(jobs, row, key, work, now))


@kernel
def _next_change(jobs: Records, h: Heaps, qs: Lanes, key: Key, work: Pass, now: float, enough: float) -> float:
    """The first instant at which a row that runs might fall behind one that waits, or any such instant up to `enough`."""
    soonest, size = np.inf, h.size[RANK]
    place = work.number[w.CROSSED]  # whoever came first last time often does so again
    for _ in range(size):
        place = place + 1 if place + 1 < size else 0
        row = h.row[RANK, place]
        rise = slope(jobs, row, key)
        if rise <= 0.0:
            continue
        mark = jobs.f[row, r.KEY] if jobs.f[row, r.LAST_START] == now else key_at(jobs, row, key, now)
        work.number[w.EVALUATED] += 1
        behind = key_behind(qs, mark, row)
        if behind < np.inf:
            soonest = min(soonest, now + (behind - mark) / rise)
            if soonest <= enough:  # the next look is at `enough` at the earliest, so it does not matter which comes first
                work.number[w.CROSSED] = place - 1
                break
    return max(soonest, now)


@kernel
def next_movable(jobs: Records, h: Heaps, now: float, min_run: float) -> float:
    """The next instant at which a gang has had its minimum run time, so that it may be stopped."""
    soonest = np.inf
    if min_run > 0.0:
        for place in range(h.size[RANK]):
            at = jobs.f[h.row[RANK, place], r.LAST_START] + min_run
            if now < at < soonest:
                soonest = at
    return soonest


@kernel
def _next_look(
    jobs: Records, h: Heaps, qs: Lanes, setting: LoopSetting, key: Key, work: Pass, now: float, length: float, quantum: float
) -> float:
    """When the order among those who run and wait may change by itself."""
    wake = np.inf
    if key.weight[k.MOVES] == 1.0:
        change, level = np.inf, np.inf
        if work.motion[w.RISES] == 1.0:
            enough = now + length if length > 0.0 else next_look(now, now, quantum)
            change = _next_change(jobs, h, qs, key, work, now, enough)
        if h.size[LEVEL] > 0:
            level = h.key[LEVEL, 0]
        if length == 0.0:
            change = next_look(change, now, quantum)
            if level <= now:
                level = next_look(now, now, quantum)
        wake = min(change, level)
    return min(wake, next_movable(jobs, h, now, setting.SF[s.S_MIN_RUN]))


@kernel
def tracked_done(jobs: Records, low: int, high: int) -> bool:
    row = low
    while row < high and not np.isnan(jobs.f[row, r.FINISH]):
        row += 1
    return row == high


@kernel
def _run(
    jobs: Records,
    h: Heaps,
    qs: Lanes,
    ds: Devices,
    log: LoopLog,
    setting: LoopSetting,
    key: Key,
    work: Pass,
    plan: Promises,
    number: Ints,
    clock: LoopClock,
) -> int:
    """The loop itself."""
    time, count = clock.time, clock.number
    rows, room = jobs.f.shape[0], work.line.shape[1] + 64
    length, levels = time[lc.ROUND], key.thresholds.shape[0] > 0
    while True:
        if log.LN[0] + room > log.LI.shape[1] or log.LN[1] + room > log.LD.shape[0]:
            return NEED_LOG
        # 1. the next instant: an arrival, a finish, or a change of order
        due = time[lc.WAKE]
        if number[ls.NEXT] < rows:
            due = min(due, jobs.f[number[ls.NEXT], r.ARRIVAL])
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
        finish(jobs, h, ds, log, setting, key, work, number, now)
        _arrive(jobs, qs, key, number, now, time[lc.LOAD_LIMIT])
        if count[lc.TRACK_HIGH] >= 0 and number[ls.FINISHED] > 0 and tracked_done(jobs, count[lc.TRACK_LOW], count[lc.TRACK_HIGH]):
            return DONE
        # 4. order, 5. walk; nothing to decide while nobody waits
        if qs.waiting[0] > 0:
            count[lc.DECISIONS] += 1
            if PREEMPTS and levels:
                _change_levels(jobs, h, key, work, now)
            if PROMISES:
                fill_gaps(jobs, h, qs, ds, log, setting, work, plan, number[ls.HELD], now)
            else:
                walk(jobs, h, qs, ds, log, setting, key, work, now)
        # 6. when to look again
        wake = next_due(jobs, h) if PREEMPTS else first(h, DUE)
        if PREEMPTS and qs.waiting[0] > 0:
            wake = min(wake, _next_look(jobs, h, qs, setting, key, work, now, length, time[lc.QUANTUM]))
        if number[ls.HELD] < number[ls.NEXT] and length > 0.0 and number[ls.ADMITTED] > 0:
            wake = min(wake, now + length)
        time[lc.WAKE] = wake


# A run compiles only what it can reach: stopping and backfilling are most of the code, and many policies do neither.
finish_without_ranks = variant(finish, "finish_without_ranks", PREEMPTS=False)
_run_in_order = variant(_run, "_run_in_order", PREEMPTS=False, walk=walk_without_stops, finish=finish_without_ranks)
_run_with_promises = variant(_run, "_run_with_promises", PREEMPTS=False, PROMISES=True, finish=finish_without_ranks)
_run_with_both = variant(_run, "_run_with_both", PROMISES=True)


def run_dense(
    jobs: Records,
    h: Heaps,
    qs: Lanes,
    ds: Devices,
    log: LoopLog,
    setting: LoopSetting,
    key: Key,
    work: Pass,
    plan: Promises,
    number: Ints,
    clock: LoopClock,
) -> int:
    """Run until everything has ended (or a bound is reached); comes back early when the log is full."""
    if setting.SI[s.S_PREEMPT] == 1:
        loop = _run_with_both if plan.promises > 0.0 else _run
    else:
        loop = _run_with_promises if plan.promises > 0.0 else _run_in_order
    return loop(jobs, h, qs, ds, log, setting, key, work, plan, number, clock)
