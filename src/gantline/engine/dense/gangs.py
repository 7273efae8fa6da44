"""What happens to one gang in the loop on records: it starts, stops, moves, finishes. The twin of `engine.gang`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.columns import Option
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.dense.devices import ChainLink, Devices, NodeRow, forget, lend, lowest
from gantline.engine.dense.heap import DUE, LEVEL, RANK, Heaps, drop, put, put_no_later
from gantline.engine.dense.records import Record, Records
from gantline.engine.gang import price
from gantline.engine.log import Interval, Log
from gantline.engine.settings import Amount

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
def start(jobs: Records, h: Heaps, ds: Devices, log: LoopLog, setting: LoopSetting, row: int, link: int, moved: bool, now: float) -> None:
    """The row begins to run on the devices of that chain."""
    f, i = jobs.f, jobs.i
    need, spread = i[row, Record.NEED], ds.chain[link, ChainLink.LINKS]
    option = i[row, Record.OPTION]
    rate = setting.OF[Option.RATE, option]
    if spread > 1:  # on more nodes than it must?
        i[row, Record.SPANNED] = 1
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
def _open(jobs: Records, ds: Devices, log: LoopLog, row: int, now: float) -> None:
    """Log that the row holds its devices from now on."""
    at, end = log.LN[0], log.LN[1]
    i = jobs.i
    i[row, Record.INTERVAL] = at
    log.LI[Interval.ROW, at] = row
    log.LI[Interval.OPTION, at] = i[row, Record.OPTION]
    log.LI[Interval.REASON, at] = 0
    log.LI[Interval.OFFSET, at] = end
    log.LI[Interval.COUNT, at] = i[row, Record.NEED]
    log.LI[Interval.NODE, at] = -1
    log.LF[Interval.START, at] = now
    log.LF[Interval.END, at] = np.nan
    link = i[row, Record.SEGMENT]
    while link >= 0:
        mask, first = ds.chain[link, ChainLink.MASK], ds.node[NodeRow.FIRST, ds.chain[link, ChainLink.NODE]]
        while mask != 0:
            log.LD[end] = first + lowest(mask)
            mask &= mask - 1
            end += 1
        link = ds.chain[link, ChainLink.NEXT]
    log.LN[0] = at + 1
    log.LN[1] = end


@kernel
def _close(jobs: Records, log: LoopLog, row: int, now: float, reason: int) -> None:
    at = jobs.i[row, Record.INTERVAL]
    log.LF[Interval.END, at] = now
    log.LI[Interval.REASON, at] = reason
    jobs.i[row, Record.INTERVAL] = -1


@kernel
def halt(jobs: Records, ds: Devices, log: LoopLog, row: int, now: float, reason: int) -> None:
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
def complete(jobs: Records, h: Heaps, ds: Devices, log: LoopLog, row: int, at: float) -> None:
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
