"""From the columns of the tables to the lines of the records, and back, row by row: what is read or written of a row lies in one line."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.columns import Job
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.dense.heap import HEAPS
from gantline.engine.dense.records import RECORD_INTS, Record

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
def to_columns(f: Floats, i: Ints32, why_of_lane: Ints, credit: float, F: Floats, I: Ints) -> int:
    """Write the loop's results into the columns, except which devices are held. Returns how many rows have spanned nodes.

    The rows have their initial values: only values that differ from these are written.
    """
    spanned = 0
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
        spanned += i[row, Record.SPANNED]
    return spanned
