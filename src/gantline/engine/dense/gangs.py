"""What happens to one gang in the loop on records: it starts, stops, moves, finishes. The twin of `engine.gang`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine import log as g
from gantline.engine import settings as s
from gantline.engine.dense import devices as d
from gantline.engine.dense import records as r
from gantline.engine.dense.devices import Devices, forget, lend, lowest
from gantline.engine.dense.heap import DUE, HEAPS, LEVEL, RANK, Heaps, drop, put, put_no_later
from gantline.engine.dense.records import Records
from gantline.engine.gang import price
from gantline.engine.log import Log

_FINISHED = int(Reason.FINISHED)


class LoopLog(NamedTuple):
    LI: Ints32
    LF: Floats
    LD: Ints32
    LN: Ints


def loop_log(log: Log) -> LoopLog:
    """The log as it is now; others after it has grown."""
    return LoopLog(log.LI, log.LF, log.LD, log.LN)


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
    if f[row, r.RATE] > 0.0:
        goal = f[row, r.WORK]
        if f[row, r.DONE] < f[row, r.ESTIMATE] < goal:
            goal = f[row, r.ESTIMATE]
        at = f[row, r.SINCE] + (goal - f[row, r.DONE]) / f[row, r.RATE]
    f[row, r.DUE] = at
    put_no_later(h, DUE, row, at)


@kernel
def next_due(jobs: Records, h: Heaps) -> float:
    """When the first running row is due, which is then on top of the heap; infinity: none runs.

    A stopped row stays in the heap, and keeps its earlier number when it starts again and is due later.
    """
    while h.size[DUE] > 0:
        row = h.row[DUE, 0]
        if jobs.i[row, r.STATE] != RUNNING:
            drop(h, DUE, row)
        elif jobs.f[row, r.DUE] > h.key[DUE, 0]:
            put(h, DUE, row, jobs.f[row, r.DUE])
        else:
            return float(h.key[DUE, 0])
    return np.inf


@kernel
def settle(jobs: Records, row: int, now: float) -> None:
    """Bring what moves with time up to `now`."""
    f = jobs.f
    ran = now - f[row, r.SINCE]
    if ran > 0.0:
        f[row, r.DONE] += f[row, r.RATE] * ran
        f[row, r.SERVICE] += ran
        f[row, r.GPUTIME] += jobs.i[row, r.NEED] * ran
        f[row, r.SINCE] = now


@kernel
def start(jobs: Records, h: Heaps, ds: Devices, log: LoopLog, setting: LoopSetting, row: int, link: int, moved: bool, now: float) -> None:
    """The row begins to run on the devices of that chain."""
    f, i = jobs.f, jobs.i
    need, spread = i[row, r.NEED], ds.chain[link, d.LINKS]
    option = i[row, r.OPTION]
    rate = setting.OF[c.O_RATE, option]
    if spread > 1:  # on more nodes than it must?
        i[row, r.SPANNED] = 1
        size = ds.node[d.SIZE, ds.chain[link, d.NODE]]
        if spread > (need + size - 1) // size:
            rate = setting.OF[c.O_RATE_SPREAD, option]
    waited = now - f[row, r.SINCE]
    if waited > 0.0:
        f[row, r.WAITED] += waited
    cost = setting.SF[s.S_RESUME]
    if i[row, r.STARTS] == 0:
        cost = setting.SF[s.S_START]
        f[row, r.FIRST_START] = now
    if moved:
        cost = setting.SF[s.S_MOVE]
    i[row, r.STARTS] += 1
    i[row, r.STATE] = RUNNING
    i[row, r.SEGMENT] = link
    i[row, r.SPREAD] = spread
    i[row, r.WHY] = 0
    f[row, r.LAST_START] = now
    f[row, r.RATE] = rate
    f[row, r.SINCE] = now + price(cost, need, setting.SF)
    set_due(jobs, h, row)
    _open(jobs, ds, log, row, now)


@kernel
def _open(jobs: Records, ds: Devices, log: LoopLog, row: int, now: float) -> None:
    """Log that the row holds its devices from now on."""
    at, end = log.LN[0], log.LN[1]
    i = jobs.i
    i[row, r.INTERVAL] = at
    log.LI[g.L_ROW, at] = row
    log.LI[g.L_OPTION, at] = i[row, r.OPTION]
    log.LI[g.L_REASON, at] = 0
    log.LI[g.L_OFFSET, at] = end
    log.LI[g.L_COUNT, at] = i[row, r.NEED]
    log.LI[g.L_NODE, at] = -1
    log.LF[g.L_START, at] = now
    log.LF[g.L_END, at] = np.nan
    link = i[row, r.SEGMENT]
    while link >= 0:
        mask, first = ds.chain[link, d.MASK], ds.node[d.FIRST, ds.chain[link, d.NODE]]
        while mask != 0:
            log.LD[end] = first + lowest(mask)
            mask &= mask - 1
            end += 1
        link = ds.chain[link, d.NEXT]
    log.LN[0] = at + 1
    log.LN[1] = end


@kernel
def _close(jobs: Records, log: LoopLog, row: int, now: float, reason: int) -> None:
    at = jobs.i[row, r.INTERVAL]
    log.LF[g.L_END, at] = now
    log.LI[g.L_REASON, at] = reason
    jobs.i[row, r.INTERVAL] = -1


@kernel
def halt(jobs: Records, ds: Devices, log: LoopLog, row: int, now: float, reason: int) -> None:
    """The row stops on purpose, with its work saved; its devices have been lent already. The heaps are left to the caller."""
    settle(jobs, row, now)
    _close(jobs, log, row, now, reason)
    forget(ds, jobs.i[row, r.SEGMENT])
    jobs.f[row, r.RATE] = 0.0
    jobs.f[row, r.SINCE] = now
    jobs.i[row, r.STATE] = PENDING
    jobs.i[row, r.STOPS] += 1
    jobs.i[row, r.WHY] = reason
    jobs.i[row, r.SEGMENT] = -1
    jobs.i[row, r.SPREAD] = 0


@kernel
def complete(jobs: Records, h: Heaps, ds: Devices, log: LoopLog, row: int, at: float) -> None:
    """The row has finished."""
    settle(jobs, row, at)
    f = jobs.f
    f[row, r.DONE] = f[row, r.WORK]
    f[row, r.FINISH] = at
    f[row, r.RATE] = 0.0
    _close(jobs, log, row, at, _FINISHED)
    link = jobs.i[row, r.SEGMENT]
    lend(ds, link)
    forget(ds, link)
    jobs.i[row, r.SEGMENT] = -1
    jobs.i[row, r.STATE] = COMPLETED
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
        f[row, r.WORK] = F[c.WORK, row]
        f[row, r.DONE] = F[c.DONE, row]
        f[row, r.SINCE] = 0.0
        f[row, r.RATE] = 0.0
        f[row, r.ESTIMATE] = F[c.ESTIMATE, row]
        f[row, r.SERVICE] = F[c.SERVICE, row]
        f[row, r.GPUTIME] = F[c.GPUTIME, row]
        f[row, r.ARRIVAL] = F[c.ARRIVAL, row]
        f[row, r.KEY] = 0.0
        f[row, r.FIRST_START] = np.nan
        f[row, r.LAST_START] = np.nan
        f[row, r.WAITED] = 0.0
        f[row, r.FINISH] = np.nan
        f[row, r.ADMITTED] = np.nan
        f[row, r.PRIORITY] = F[c.PRIORITY, row]
        f[row, r.DUE] = 0.0
        for number in range(r.I_COUNT):
            i[row, number] = 0
        i[row, r.NEED] = I[c.GPUS, row]
        i[row, r.LANE] = lane_of[row]
        i[row, r.OPTION] = I[c.OPTION_FIRST, row]
        i[row, r.SEGMENT] = -1
        i[row, r.INTERVAL] = -1
        for heap in range(HEAPS):
            i[row, r.AT + heap] = -1


@kernel
def to_columns(f: Floats, i: Ints32, why_of_lane: Ints, credit: float, F: Floats, I: Ints) -> int:
    """Write the loop's results into the columns, except which devices are held. Returns how many rows have spanned nodes.

    The rows have their initial values: only values that differ from these are written.
    """
    spanned = 0
    for row in range(f.shape[0]):
        state, starts = i[row, r.STATE], i[row, r.STARTS]
        F[c.DONE, row] = f[row, r.DONE]
        F[c.SINCE, row] = f[row, r.SINCE]
        F[c.ESTIMATE, row] = f[row, r.ESTIMATE]
        F[c.SERVICE, row] = f[row, r.SERVICE]
        F[c.GPUTIME, row] = f[row, r.GPUTIME]
        F[c.WAITED, row] = f[row, r.WAITED]
        F[c.FIRST_START, row] = f[row, r.FIRST_START]
        F[c.LAST_START, row] = f[row, r.LAST_START]
        F[c.FINISH, row] = f[row, r.FINISH]
        F[c.ADMITTED, row] = f[row, r.ADMITTED]
        F[c.KEY, row] = f[row, r.KEY]
        F[c.SAFE, row] = f[row, r.WORK] if state == COMPLETED else f[row, r.DONE]
        I[c.PHASE, row] = state
        I[c.EPOCH, row] = starts
        I[c.SPREAD, row] = i[row, r.SPREAD]
        if i[row, r.STOPS] > 0:
            I[c.PREEMPTIONS, row] = i[row, r.STOPS]
        if starts > 1:
            I[c.RESTARTS, row] = starts - 1
        if starts > 0:
            F[c.MARK, row] = f[row, r.FIRST_START] + credit
        if state == RUNNING:
            F[c.RATE, row] = f[row, r.RATE]
            F[c.DUE, row] = f[row, r.DUE]
            I[c.INTERVAL, row] = i[row, r.INTERVAL]
            I[c.HELD, row] = i[row, r.NEED]
            I[c.OPTION, row] = i[row, r.OPTION]
        # why it waits: what was found for it, or for the one in front of it that asks for as much
        why = i[row, r.WHY]
        if state == PENDING and why == _ARRIVED and why_of_lane[i[row, r.LANE]] != 0:
            why = why_of_lane[i[row, r.LANE]]
        if why != 0:
            I[c.REASON, row] = why
        spanned += i[row, r.SPANNED]
    return spanned
