"""Backfilling in the loop on records: the same answers as `policies.backfill`, found with fewer comparisons.

EASY promises a time to the first row that does not fit. Except for that promise, free devices only become more over time, so three
numbers decide whether another row may start: what is free now, when the promise begins, and what is left over then. The conservative
kind promises every row a time, in a list of instants and of what is free from each on; a row with the same gang size as an earlier one
need not be tried before that one's time. Planning anew at every decision changes nothing where gangs start and end exactly as
promised, so then promises are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.dense.devices import Devices, Total
from gantline.engine.dense.gangs import LoopSetting, start
from gantline.engine.dense.heap import DUE, FRONT, LEVEL, Heaps, drop, pop, push, put
from gantline.engine.dense.low_ranks import Pass, PassCount, PassLine
from gantline.engine.dense.queues import Lane, Lanes, next_lane, place_in_ring, remove, restart
from gantline.engine.dense.records import Record, Records
from gantline.engine.dense.walk import find_free
from gantline.engine.log import LogColumns
from gantline.engine.settings import Switch

INSTANT = 1e-6  # seconds that a gang takes at least
FREE, NEXT, INSTANTS = range(3)
# places of `mark`: instants in use, the instant that is now, the first row without a promise, whether promises stand
USED, PRESENT, PROMISED, STANDS, MARKS = range(5)


class Promises(NamedTuple):
    """Instants in order, linked: when each is, how many devices are free from then on, which is the next (-1: none)."""

    time: Floats
    link: Ints  # (what, instant)
    mark: Ints
    promises: float  # to how many


def forecast(promises: float, rows: int, devices: int, stands: bool) -> Promises:
    """All devices free; EASY keeps no list. `stands`: everything will go as planned, so promises need not be made anew."""
    instants = 2 * rows + min(rows, devices) + 2 if promises > 1.0 else 1
    time, link, mark = np.zeros(instants), np.zeros((INSTANTS, instants), dtype=np.int64), np.zeros(MARKS, dtype=np.int64)
    time[0], link[FREE, 0], link[NEXT, 0], mark[USED], mark[STANDS] = -1.0, devices, -1, 1, int(stands)
    return Promises(time, link, mark, promises)


@kernel
def _length(jobs: Records, row: int) -> float:
    """How long a row that waits takes, by its estimate."""
    return float(max(jobs.f[row, Record.ESTIMATE] - jobs.f[row, Record.DONE], INSTANT))


@kernel
def _expect_ends(jobs: Records, h: Heaps, work: Pass, now: float) -> None:
    """Running rows, by their estimated ends."""
    f = jobs.f
    for place in range(h.size[DUE]):
        row = h.row[DUE, place]
        ran = max(0.0, now - f[row, Record.SINCE])
        left = max(0.0, f[row, Record.ESTIMATE] - (f[row, Record.DONE] + f[row, Record.RATE] * ran))
        push(h, now + max(left, INSTANT) / (f[row, Record.RATE] if f[row, Record.RATE] > 0.0 else 1.0), row)
    work.number[PassCount.EVALUATED] += h.size[DUE]


@kernel
def _choose(work: Pass, row: int) -> None:
    work.line[PassLine.BEGUN, work.number[PassCount.AT_BEGUN]] = row
    work.number[PassCount.AT_BEGUN] += 1


@kernel
def _easy(jobs: Records, h: Heaps, qs: Lanes, ds: Devices, work: Pass, now: float) -> None:
    """Choose which rows start: in order while they fit, then those that do not delay the first that does not fit."""
    free, blocked = ds.total[Total.FREE_IN_ALL], -1
    while blocked < 0:
        lane = next_lane(qs, 1 << 60)
        if lane < 0:
            return
        row = qs.row[place_in_ring(qs, lane, qs.lane[Lane.CURSOR, lane])]
        work.number[PassCount.LOOKED] += 1
        qs.lane[Lane.CURSOR, lane] += 1
        if jobs.i[row, Record.NEED] <= free:
            free -= jobs.i[row, Record.NEED]
            _choose(work, row)
        else:
            blocked = row
    if next_lane(qs, free) < 0:
        return
    # when the blocked one can start, and what is left over then
    _expect_ends(jobs, h, work, now)
    for place in range(work.number[PassCount.AT_BEGUN]):
        row = work.line[PassLine.BEGUN, place]
        push(h, now + _length(jobs, row), row)
    spare, begins = free - jobs.i[blocked, Record.NEED], np.inf
    while h.size[FRONT] > 0 and (spare < 0 or h.key[FRONT, 0] == begins):
        begins, row = h.key[FRONT, 0], h.row[FRONT, 0]
        spare += jobs.i[row, Record.NEED]
        pop(h)
    h.size[FRONT] = 0
    while True:
        lane = _next_harmless(jobs, qs, work, free, spare, begins, now)
        if lane < 0:
            return
        row = qs.row[place_in_ring(qs, lane, qs.lane[Lane.CURSOR, lane])]
        qs.lane[Lane.CURSOR, lane] += 1
        free -= jobs.i[row, Record.NEED]
        if begins < now + _length(jobs, row):
            spare -= jobs.i[row, Record.NEED]
        _choose(work, row)


@kernel
def _next_harmless(jobs: Records, qs: Lanes, work: Pass, free: int, spare: int, begins: float, now: float) -> int:
    """The lane with the first next job in order that fits now and does not delay the promise; the others' cursors stand at theirs."""
    for lane in range(qs.lane.shape[1]):
        need = qs.lane[Lane.SIZE, lane]
        if need > free:
            break
        if need > spare:
            at, count = qs.lane[Lane.CURSOR, lane], qs.lane[Lane.COUNT, lane]
            while at < count and begins < now + qs.length[place_in_ring(qs, lane, at)]:
                at += 1
                work.number[PassCount.LOOKED] += 1
                if at < count and begins < now + qs.least[place_in_ring(qs, lane, at)]:
                    at = count  # all the others are too long as well
            qs.lane[Lane.CURSOR, lane] = at
    return next_lane(qs, free)


@kernel
def _anybody_yet(qs: Lanes, plan: Promises, now: float) -> bool:
    """Whether a row is left that is small and short enough for what is free from now on, as promised so far."""
    time, link = plan.time, plan.link
    at = 0
    for lane in range(qs.lane.shape[1] - 1, -1, -1):
        number = qs.lane[Lane.CURSOR, lane]
        if number >= qs.lane[Lane.COUNT, lane]:
            continue
        while at >= 0 and link[FREE, at] >= qs.lane[Lane.SIZE, lane]:
            at = link[NEXT, at]
        if at < 0 or now + qs.least[place_in_ring(qs, lane, number)] <= time[at]:
            return True
    return False


@kernel
def _add(plan: Promises, after: int, at: float) -> int:
    """One more instant behind another, with as many devices free."""
    new = plan.mark[USED]
    plan.mark[USED] += 1
    plan.time[new] = at
    plan.link[FREE, new] = plan.link[FREE, after]
    plan.link[NEXT, new] = plan.link[NEXT, after]
    plan.link[NEXT, after] = new
    return int(new)


@kernel
def _promise(qs: Lanes, plan: Promises, lane: int, length: float) -> float:
    """The earliest time at which a gang of that lane has room for so long; the room is taken."""
    time, link, need = plan.time, plan.link, qs.lane[Lane.SIZE, lane]
    begin = qs.lane[Lane.HINT, lane]
    while link[FREE, begin] < need:
        begin = link[NEXT, begin]
    qs.lane[Lane.HINT, lane] = begin
    before, end = begin, time[begin] + length  # the last instant inside; all of them have room
    while True:
        after = link[NEXT, before]
        if after < 0 or time[after] >= end:
            break
        before = after
        if link[FREE, after] < need:
            begin = after
            while link[FREE, begin] < need:
                begin = link[NEXT, begin]
            before, end = begin, time[begin] + length
    after = link[NEXT, before]
    if after < 0 or time[after] != end:
        after = _add(plan, before, end)
    at = begin
    while at != after:
        link[FREE, at] -= need
        at = link[NEXT, at]
    return float(time[begin])


@kernel
def _plan_anew(jobs: Records, h: Heaps, qs: Lanes, ds: Devices, work: Pass, plan: Promises, now: float) -> None:
    """Choose which rows start, by promising each a time, in order, until none is left that could start now."""
    time, link = plan.time, plan.link
    _expect_ends(jobs, h, work, now)
    time[0], link[FREE, 0], link[NEXT, 0], plan.mark[USED] = now, ds.total[Total.FREE_IN_ALL], -1, 1
    last = 0
    while h.size[FRONT] > 0:
        at, row = h.key[FRONT, 0], h.row[FRONT, 0]
        pop(h)
        if at != time[last]:
            last = _add(plan, last, at)
        link[FREE, last] += jobs.i[row, Record.NEED]
    for lane in range(qs.lane.shape[1]):
        qs.lane[Lane.HINT, lane] = 0
    promised, check = 0, 0
    while True:
        if promised == check:  # seldom, as looking costs too
            if not _anybody_yet(qs, plan, now):
                return
            check = 2 * check + 1
        promised += 1
        lane = next_lane(qs, 1 << 60)
        if lane < 0:
            return
        at = place_in_ring(qs, lane, qs.lane[Lane.CURSOR, lane])
        qs.lane[Lane.CURSOR, lane] += 1
        work.number[PassCount.LOOKED] += 1
        if _promise(qs, plan, lane, qs.length[at]) <= now:
            _choose(work, qs.row[at])


@kernel
def _keep_promises(jobs: Records, h: Heaps, qs: Lanes, work: Pass, plan: Promises, entered: int, now: float) -> None:
    """Choose which rows start where everything goes as planned: promises hold, and only new rows need one."""
    time, link, mark = plan.time, plan.link, plan.mark
    while link[NEXT, mark[PRESENT]] >= 0 and time[link[NEXT, mark[PRESENT]]] <= now:
        mark[PRESENT] = link[NEXT, mark[PRESENT]]
    time[mark[PRESENT]] = now
    for row in range(mark[PROMISED], entered):
        lane = jobs.i[row, Record.LANE]
        if time[qs.lane[Lane.HINT, lane]] <= now:
            qs.lane[Lane.HINT, lane] = mark[PRESENT]
        put(h, LEVEL, row, _promise(qs, plan, lane, _length(jobs, row)))
        work.number[PassCount.LOOKED] += 1
    mark[PROMISED] = entered
    while h.size[LEVEL] > 0 and h.key[LEVEL, 0] <= now:
        row = h.row[LEVEL, 0]
        drop(h, LEVEL, row)
        at = work.number[PassCount.AT_BEGUN]
        while at > 0 and work.line[PassLine.BEGUN, at - 1] > row:
            work.line[PassLine.BEGUN, at] = work.line[PassLine.BEGUN, at - 1]
            at -= 1
        work.line[PassLine.BEGUN, at] = row
        work.number[PassCount.AT_BEGUN] += 1


@kernel
def fill_gaps(
    jobs: Records,
    h: Heaps,
    qs: Lanes,
    ds: Devices,
    log: LogColumns,
    setting: LoopSetting,
    work: Pass,
    plan: Promises,
    entered: int,
    now: float,
) -> None:
    """Start the rows that may, as far as placement has devices for them; rows below `entered` have been let in."""
    restart(qs)
    work.number[PassCount.AT_BEGUN] = 0
    if plan.promises <= 1.0:
        _easy(jobs, h, qs, ds, work, now)
    elif plan.mark[STANDS] == 1:
        _keep_promises(jobs, h, qs, work, plan, entered, now)
    else:
        _plan_anew(jobs, h, qs, ds, work, plan, now)
    tried = 1 << 60
    one_node = setting.SI[Switch.ONE_NODE] == 1
    apart = ds.total[Total.APART] if one_node else 0  # up to this size, larger gangs may fit where one does not
    for place in range(work.number[PassCount.AT_BEGUN]):
        row = work.line[PassLine.BEGUN, place]
        need = jobs.i[row, Record.NEED]
        if need > ds.total[Total.FREE_IN_ALL] or need >= tried:
            continue
        chain = find_free(ds, need, one_node, setting.SI[Switch.WHOLE] == 1)
        if chain < 0:
            tried = need if need > apart else tried
            continue
        remove(qs, jobs.i[row, Record.LANE], jobs.f[row, Record.KEY], row)
        start(jobs, h, ds, log, setting, row, chain, False, now)
        work.number[PassCount.STARTED] += 1
