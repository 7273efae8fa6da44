"""The verbs of the loop on records: every step costs what changed, not what runs or waits.

Finishes and levels come from heaps, ranks from a heap that need not be touched while keys keep their order, those that wait from lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.jit import variant
from gantline.core.phases import HELD_BACK, PENDING
from gantline.core.reasons import Reason
from gantline.engine.declared_key import Coefficient
from gantline.engine.dense.backfill import INSTANT, Promises, fill_gaps
from gantline.engine.dense.devices import Devices
from gantline.engine.dense.gangs import LoopLog, LoopSetting, complete, next_due, set_due
from gantline.engine.dense.heap import DUE, LEVEL, RANK, Heaps, drop, first, put
from gantline.engine.dense.keys import Key, key_at, key_of, next_level, slope
from gantline.engine.dense.low_ranks import Motion, Pass, PassCount, PassLine, rank_key
from gantline.engine.dense.queues import Lanes, enter, key_behind
from gantline.engine.dense.records import Record, Records
from gantline.engine.dense.walk import walk, walk_without_stops
from gantline.engine.drivers.loop_clock import LoopClock, LoopCount, LoopTime, Outcome
from gantline.engine.drivers.six_steps import Verbs, loop_over
from gantline.engine.instants import next_look
from gantline.engine.lists import RowCount
from gantline.engine.settings import Amount, Switch

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)
PREEMPTS, PROMISES = True, False  # whether gangs may be stopped, whether there is backfilling; known when it is compiled (`variant`)
DEMAND = 7  # one more place of `number`, beyond those of `engine.lists`: devices that admitted jobs ask for


class OnRecords(NamedTuple):
    """All that the loop works on."""

    jobs: Records
    h: Heaps
    qs: Lanes
    ds: Devices
    log: LoopLog
    setting: LoopSetting
    key: Key
    work: Pass
    plan: Promises


@kernel
def has_room(on: OnRecords, number: Ints, clock: LoopClock) -> bool:
    log, room = on.log, on.work.line.shape[1] + 64
    return bool(log.LN[0] + room <= log.LI.shape[1] and log.LN[1] + room <= log.LD.shape[0])


@kernel
def has_ended(on: OnRecords, row: int) -> bool:
    return not np.isnan(on.jobs.f[row, Record.FINISH])


@kernel
def due(on: OnRecords, number: Ints) -> float:
    """When the next row arrives."""
    f = on.jobs.f
    return float(f[number[RowCount.NEXT], Record.ARRIVAL]) if number[RowCount.NEXT] < f.shape[0] else np.inf


@kernel
def next_end(on: OnRecords, number: Ints) -> float:
    """When the next gang is done, or its estimate proves too low."""
    return next_due(on.jobs, on.h) if PREEMPTS else first(on.h, DUE)


@kernel
def finish(on: OnRecords, number: Ints, now: float) -> None:
    """Complete every gang that has done its work by `now`, and raise estimates that turned out too low."""
    jobs, h, ds, log, setting, key, work = on.jobs, on.h, on.ds, on.log, on.setting, on.key, on.work
    f = jobs.f
    number[RowCount.FINISHED] = 0
    while (next_due(jobs, h) if PREEMPTS else first(h, DUE)) <= now:
        row = h.row[DUE, 0]
        at = f[row, Record.SINCE] + (f[row, Record.WORK] - f[row, Record.DONE]) / f[row, Record.RATE]
        if at <= now:
            complete(jobs, h, ds, log, row, now if setting.SI[Switch.BOUNDARY] == 1 else at)
            number[RowCount.ACTIVE] -= 1
            number[DEMAND] -= jobs.i[row, Record.NEED]
            number[RowCount.FINISHED] += 1
            continue
        # its estimate was too low. Mean residual life of a heavy tail: as long again
        f[row, Record.ESTIMATE] = 2.0 * (f[row, Record.DONE] + f[row, Record.RATE] * max(0.0, now - f[row, Record.SINCE]))
        set_due(jobs, h, row)
        put(h, DUE, row, f[row, Record.DUE])  # later than it stood; else it would stay on top, and be looked at for ever
        if PREEMPTS:
            put(h, RANK, row, rank_key(jobs, row, key, work, now))


@kernel
def arrive(on: OnRecords, number: Ints, now: float, load_limit: float) -> None:
    """Put rows that have arrived by `now` into their lanes: all of them, or in order while demand is within the limit (GPUs)."""
    jobs, key = on.jobs, on.key
    f, i = jobs.f, jobs.i
    rows = f.shape[0]
    while number[RowCount.NEXT] < rows and f[number[RowCount.NEXT], Record.ARRIVAL] <= now:
        row = number[RowCount.NEXT]
        number[RowCount.NEXT] += 1
        i[row, Record.STATE] = HELD_BACK
        i[row, Record.WHY] = _LOAD_LIMIT
        f[row, Record.SINCE] = f[row, Record.ARRIVAL]
    number[RowCount.ADMITTED] = 0
    while number[RowCount.HELD] < number[RowCount.NEXT] and number[DEMAND] <= load_limit:
        row = number[RowCount.HELD]
        number[RowCount.HELD] += 1
        number[DEMAND] += i[row, Record.NEED]
        number[RowCount.ACTIVE] += 1
        number[RowCount.ADMITTED] += 1
        i[row, Record.STATE] = PENDING
        i[row, Record.WHY] = _ARRIVED
        f[row, Record.ADMITTED] = now
        f[row, Record.KEY] = key_of(jobs, row, key, 0.0)
        enter(on.qs, i[row, Record.LANE], f[row, Record.KEY], row, max(f[row, Record.ESTIMATE], INSTANT))


@kernel
def _change_levels(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> None:
    """Rank jobs anew that have reached a level, or are so close to it that only the exact sum decides."""
    until = now + 1e-6 + 4e-15 * now
    count = 0
    while h.size[LEVEL] > 0 and h.key[LEVEL, 0] <= until:
        row = h.row[LEVEL, 0]
        drop(h, LEVEL, row)
        work.line[PassLine.BEGUN, count] = row
        count += 1
    for place in range(count):
        row = work.line[PassLine.BEGUN, place]
        put(h, LEVEL, row, next_level(jobs, row, key, now))
        put(h, RANK, row, rank_key(jobs, row, key, work, now))


@kernel
def _next_change(jobs: Records, h: Heaps, qs: Lanes, key: Key, work: Pass, now: float, enough: float) -> float:
    """The first instant at which a row that runs might fall behind one that waits, or any such instant up to `enough`."""
    soonest, size = np.inf, h.size[RANK]
    place = work.number[PassCount.CROSSED]  # the row that came first last time often does so again
    for _ in range(size):
        place = place + 1 if place + 1 < size else 0
        row = h.row[RANK, place]
        rise = slope(jobs, row, key)
        if rise <= 0.0:
            continue
        mark = jobs.f[row, Record.KEY] if jobs.f[row, Record.LAST_START] == now else key_at(jobs, row, key, now)
        work.number[PassCount.EVALUATED] += 1
        behind = key_behind(qs, mark, row)
        if behind < np.inf:
            soonest = min(soonest, now + (behind - mark) / rise)
            if soonest <= enough:  # the next look is at `enough` at the earliest, so it does not matter which comes first
                work.number[PassCount.CROSSED] = place - 1
                break
    return max(soonest, now)


@kernel
def _next_movable(jobs: Records, h: Heaps, now: float, min_run: float) -> float:
    """The next instant at which a gang has had its minimum run time, so that it may be stopped."""
    soonest = np.inf
    if min_run > 0.0:
        for place in range(h.size[RANK]):
            at = jobs.f[h.row[RANK, place], Record.LAST_START] + min_run
            if now < at < soonest:
                soonest = at
    return soonest


@kernel
def decide(on: OnRecords, number: Ints, clock: LoopClock, now: float) -> int:
    """Nothing is to be decided while nothing waits."""
    if on.qs.waiting[0] > 0:
        count, work = clock.number, on.work
        count[LoopCount.DECISIONS] += 1
        if PREEMPTS and on.key.thresholds.shape[0] > 0:
            _change_levels(on.jobs, on.h, on.key, work, now)
        if PROMISES:
            fill_gaps(on.jobs, on.h, on.qs, on.ds, on.log, on.setting, work, on.plan, number[RowCount.HELD], now)
        else:
            walk(on.jobs, on.h, on.qs, on.ds, on.log, on.setting, on.key, work, now)
        count[LoopCount.STARTED], count[LoopCount.STOPPED] = work.number[PassCount.STARTED], work.number[PassCount.STOPPED]
    return Outcome.GO_ON


@kernel
def wake(on: OnRecords, number: Ints, clock: LoopClock, now: float) -> float:
    """When the order of what runs and waits may change by itself, or a gang may be stopped that may not yet."""
    if not PREEMPTS or on.qs.waiting[0] == 0:
        return np.inf
    jobs, h, key, length, quantum = on.jobs, on.h, on.key, clock.time[LoopTime.ROUND], clock.time[LoopTime.QUANTUM]
    change, level = np.inf, np.inf
    if key.weight[Coefficient.MOVES] == 1.0:
        if on.work.motion[Motion.RISES] == 1.0:
            enough = now + length if length > 0.0 else next_look(now, now, quantum)
            change = _next_change(jobs, h, on.qs, key, on.work, now, enough)
        if h.size[LEVEL] > 0:
            level = h.key[LEVEL, 0]
        if length == 0.0:
            change = next_look(change, now, quantum)
            if level <= now:
                level = next_look(now, now, quantum)
    return min(min(change, level), _next_movable(jobs, h, now, on.setting.SF[Amount.MIN_RUN]))


def _compiled(name: str, **known: Any) -> Any:
    """A run compiles only what it can reach: stopping and backfilling are most of the code, and many policies do neither."""
    own: dict[str, Any] = {verb.__name__: variant(verb, f"{verb.__name__}_{name}", **known) for verb in (finish, decide, wake, next_end)}
    return loop_over(Verbs(due=due, arrive=arrive, has_room=has_room, has_ended=has_ended, **own), f"run_{name}", __name__)


run_with_stops = _compiled("with_stops")
run_in_order = _compiled("in_order", PREEMPTS=False, walk=walk_without_stops)
run_with_promises = _compiled("with_promises", PREEMPTS=False, PROMISES=True)
run_with_both = _compiled("with_both", PROMISES=True)


def run_records(on: OnRecords, number: Ints, clock: LoopClock) -> int:
    """Run until everything has ended (or a bound is reached); comes back early when the log is full."""
    if on.setting.SI[Switch.PREEMPT] == 1:
        loop = run_with_both if on.plan.promises > 0.0 else run_with_stops
    else:
        loop = run_with_promises if on.plan.promises > 0.0 else run_in_order
    return int(loop(on, number, clock))
