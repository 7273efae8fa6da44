"""What happens to one gang in the loop on records: it starts, stops, moves, finishes. The twin of `engine.gang`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.columns import Job, Option
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.dense.devices import ChainLink, Devices, NodeRow, forget, lend, lowest
from gantline.engine.dense.heap import DUE, HEAPS, LEVEL, RANK, Heaps, drop, put, put_no_later
from gantline.engine.dense.records import RECORD_INTS, Record, Records
from gantline.engine.gang import price
from gantline.engine.log import Interval, LogColumns, LogSize
from gantline.engine.settings import Amount

_FINISHED = int(Reason.FINISHED)


class LoopSetting(NamedTuple):
    """What steers the loop: the numbers of `engine.settings`, and the speeds of the options."""

    SI: Ints
    SF: Floats
    OF: Floats


@kernel
def set_due(jobs: Records, h: Heaps, row: int) -> None:
    """When the row, left alone, is done or its estimate proves too low."""
    f = jobs.f
    at = np.inf
    if f[row, Record.RATE] > 0.0:
        goal = f[row, Record.WORK]
        if f[row, Record.DONE] < f[row, Record.ESTIMATE] < goal:
            goal = f[row, Record.ESTIMATE]
        at = f[row, Record.SINCE] + (goal - f[row, Record.DONE]) / f[row, Record.RATE]
    f[row, Record.DUE] = at
    put_no_later(h, DUE, row, at)


@kernel
def next_due(jobs: Records, h: Heaps) -> float:
    """When the first running row is due, which is then on top of the heap; infinity: none runs.

    A stopped row stays in the heap, and keeps its earlier number when it starts again and is due later.
    """
    while h.size[DUE] > 0:
        row = h.row[DUE, 0]
        if jobs.i[row, Record.STATE] != RUNNING:
            drop(h, DUE, row)
        elif jobs.f[row, Record.DUE] > h.key[DUE, 0]:
            put(h, DUE, row, jobs.f[row, Record.DUE])
        else:
            return float(h.key[DUE, 0])
    return np.inf


@kernel
def settle(jobs: Records, row: int, now: float) -> None:
    """Bring what moves with time up to `now`."""
    f = jobs.f
    ran = now - f[row, Record.SINCE]
    if ran > 0.0:
        f[row, Record.DONE] += f[row, Record.RATE] * ran
        f[row, Record.SERVICE] += ran
        f[row, Record.GPUTIME] += jobs.i[row, Record.NEED] * ran
        f[row, Record.SINCE] = now


@kernel
def start(
    jobs: Records, h: Heaps, ds: Devices, log: LogColumns, setting: LoopSetting, row: int, link: int, moved: bool, now: float
) -> None:
    """The row begins to run on the devices of that chain."""
    f, i = jobs.f, jobs.i
    need, spread = i[row, Record.NEED], ds.chain[link, ChainLink.LINKS]
    option = i[row, Record.OPTION]
    rate = setting.OF[Option.RATE, option]
    if spread > 1:  # on more nodes than it must?
        size = ds.node[NodeRow.SIZE, ds.chain[link, ChainLink.NODE]]
        if spread > (need + size - 1) // size:
            rate = setting.OF[Option.RATE_SPREAD, option]
    waited = now - f[row, Record.SINCE]
    if waited > 0.0:
        f[row, Record.WAITED] += waited
    cost = setting.SF[Amount.RESUME]
    if i[row, Record.STARTS] == 0:
        cost = setting.SF[Amount.START]
        f[row, Record.FIRST_START] = now
    if moved:
        cost = setting.SF[Amount.MOVE]
    i[row, Record.STARTS] += 1
    i[row, Record.STATE] = RUNNING
    i[row, Record.SEGMENT] = link
    i[row, Record.SPREAD] = spread
    i[row, Record.WHY] = 0
    f[row, Record.LAST_START] = now
    f[row, Record.RATE] = rate
    f[row, Record.SINCE] = now + price(cost, need, setting.SF)
    set_due(jobs, h, row)
    _open(jobs, ds, log, row, now)


@kernel
def _open(jobs: Records, ds: Devices, log: LogColumns, row: int, now: float) -> None:
    """Log that the row holds its devices from now on."""
    at, end = log.written[LogSize.INTERVALS], log.written[LogSize.DEVICES]
    i = jobs.i
    i[row, Record.INTERVAL] = at
    log.entry[Interval.ROW, at] = row
    log.entry[Interval.OPTION, at] = i[row, Record.OPTION]
    log.entry[Interval.REASON, at] = 0
    log.entry[Interval.OFFSET, at] = end
    log.entry[Interval.COUNT, at] = i[row, Record.NEED]
    log.entry[Interval.NODE, at] = -1
    log.time[Interval.START, at] = now
    log.time[Interval.END, at] = np.nan
    link = i[row, Record.SEGMENT]
    while link >= 0:
        mask, first = ds.chain[link, ChainLink.MASK], ds.node[NodeRow.FIRST, ds.chain[link, ChainLink.NODE]]
        while mask != 0:
            log.device[end] = first + lowest(mask)
            mask &= mask - 1
            end += 1
        link = ds.chain[link, ChainLink.NEXT]
    log.written[LogSize.INTERVALS] = at + 1
    log.written[LogSize.DEVICES] = end


@kernel
def _close(jobs: Records, log: LogColumns, row: int, now: float, reason: int) -> None:
    at = jobs.i[row, Record.INTERVAL]
    log.time[Interval.END, at] = now
    log.entry[Interval.REASON, at] = reason
    jobs.i[row, Record.INTERVAL] = -1


@kernel
def halt(jobs: Records, ds: Devices, log: LogColumns, row: int, now: float, reason: int) -> None:
    """The row stops on purpose, with its work saved; its devices have been lent already. The heaps are left to the caller."""
    settle(jobs, row, now)
    _close(jobs, log, row, now, reason)
    forget(ds, jobs.i[row, Record.SEGMENT])
    jobs.f[row, Record.RATE] = 0.0
    jobs.f[row, Record.SINCE] = now
    jobs.i[row, Record.STATE] = PENDING
    jobs.i[row, Record.STOPS] += 1
    jobs.i[row, Record.WHY] = reason
    jobs.i[row, Record.SEGMENT] = -1
    jobs.i[row, Record.SPREAD] = 0


@kernel
def complete(jobs: Records, h: Heaps, ds: Devices, log: LogColumns, row: int, at: float) -> None:
    """The row has finished."""
    settle(jobs, row, at)
    f = jobs.f
    f[row, Record.DONE] = f[row, Record.WORK]
    f[row, Record.FINISH] = at
    f[row, Record.RATE] = 0.0
    _close(jobs, log, row, at, _FINISHED)
    link = jobs.i[row, Record.SEGMENT]
    lend(ds, link)
    forget(ds, link)
    jobs.i[row, Record.SEGMENT] = -1
    jobs.i[row, Record.STATE] = COMPLETED
    drop(h, DUE, row)
    if h.size[RANK] > 0:  # the heaps of a policy that never stops a gang are empty
        drop(h, RANK, row)
        drop(h, LEVEL, row)


# --- from the columns of the tables to the lines of the records, and back -----------------------------------------------
_ARRIVED = int(Reason.ARRIVED)


@kernel
def to_lines(F: Floats, I: Ints, lane_of: Ints, f: Floats, i: Ints32) -> None:
    """Write the lines of all rows, none of which has arrived, into uninitialised memory."""
    for row in range(f.shape[0]):
        f[row, Record.WORK] = F[Job.WORK, row]
        f[row, Record.DONE] = F[Job.DONE, row]
        f[row, Record.SINCE] = 0.0
        f[row, Record.RATE] = 0.0
        f[row, Record.ESTIMATE] = F[Job.ESTIMATE, row]
        f[row, Record.SERVICE] = F[Job.SERVICE, row]
        f[row, Record.GPUTIME] = F[Job.GPUTIME, row]
        f[row, Record.ARRIVAL] = F[Job.ARRIVAL, row]
        f[row, Record.KEY] = 0.0
        f[row, Record.FIRST_START] = np.nan
        f[row, Record.LAST_START] = np.nan
        f[row, Record.WAITED] = 0.0
        f[row, Record.FINISH] = np.nan
        f[row, Record.ADMITTED] = np.nan
        f[row, Record.PRIORITY] = F[Job.PRIORITY, row]
        f[row, Record.DUE] = 0.0
        for number in range(RECORD_INTS):
            i[row, number] = 0
        i[row, Record.NEED] = I[Job.GPUS, row]
        i[row, Record.LANE] = lane_of[row]
        i[row, Record.OPTION] = I[Job.OPTION_FIRST, row]
        i[row, Record.SEGMENT] = -1
        i[row, Record.INTERVAL] = -1
        for heap in range(HEAPS):
            i[row, Record.AT + heap] = -1


@kernel
def to_columns(f: Floats, i: Ints32, why_of_lane: Ints, credit: float, F: Floats, I: Ints) -> None:
    """Write the loop's results into the columns, except which devices are held.

    The rows have their initial values: only values that differ from these are written.
    """
    for row in range(f.shape[0]):
        state, starts = i[row, Record.STATE], i[row, Record.STARTS]
        F[Job.DONE, row] = f[row, Record.DONE]
        F[Job.SINCE, row] = f[row, Record.SINCE]
        F[Job.ESTIMATE, row] = f[row, Record.ESTIMATE]
        F[Job.SERVICE, row] = f[row, Record.SERVICE]
        F[Job.GPUTIME, row] = f[row, Record.GPUTIME]
        F[Job.WAITED, row] = f[row, Record.WAITED]
        F[Job.FIRST_START, row] = f[row, Record.FIRST_START]
        F[Job.LAST_START, row] = f[row, Record.LAST_START]
        F[Job.FINISH, row] = f[row, Record.FINISH]
        F[Job.ADMITTED, row] = f[row, Record.ADMITTED]
        F[Job.KEY, row] = f[row, Record.KEY]
        F[Job.SAFE, row] = f[row, Record.WORK] if state == COMPLETED else f[row, Record.DONE]
        I[Job.PHASE, row] = state
        I[Job.EPOCH, row] = starts
        I[Job.SPREAD, row] = i[row, Record.SPREAD]
        if i[row, Record.STOPS] > 0:
            I[Job.PREEMPTIONS, row] = i[row, Record.STOPS]
        if starts > 1:
            I[Job.RESTARTS, row] = starts - 1
        if starts > 0:
            F[Job.MARK, row] = f[row, Record.FIRST_START] + credit
        if state == RUNNING:
            F[Job.RATE, row] = f[row, Record.RATE]
            F[Job.DUE, row] = f[row, Record.DUE]
            I[Job.INTERVAL, row] = i[row, Record.INTERVAL]
            I[Job.HELD, row] = i[row, Record.NEED]
            I[Job.OPTION, row] = i[row, Record.OPTION]
        # why it waits: what was found for it, or for the one in front of it that asks for as much
        why = i[row, Record.WHY]
        if state == PENDING and why == _ARRIVED and why_of_lane[i[row, Record.LANE]] != 0:
            why = why_of_lane[i[row, Record.LANE]]
        if why != 0:
            I[Job.REASON, row] = why
