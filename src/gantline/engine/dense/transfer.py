"""From the columns of the tables to the lines of the records, and back, row by row: what is read or written of a row lies in one line."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.dense import records as r
from gantline.engine.dense.heap import HEAPS

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
