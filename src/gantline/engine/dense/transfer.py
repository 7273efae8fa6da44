"""From the columns of the tables to the lines of the records, and back, in blocks of rows that stay in the cache."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.dense import records as r
from gantline.engine.dense.heap import HEAPS

_GIVEN = np.array((*r.GIVEN, *r.FOUND), dtype=np.int64)  # what the loop reads, and what it may change
_FOUND = np.array(r.FOUND, dtype=np.int64)
_BLOCK = 256
_ARRIVED = int(Reason.ARRIVED)


@kernel
def to_lines(F: Floats, I: Ints, lane_of: Ints, f: Floats, i: Ints32) -> None:
    """Write the lines of all rows, none of which has arrived, into memory that nobody has written to."""
    rows = f.shape[0]
    for first in range(0, rows, _BLOCK):
        last = min(first + _BLOCK, rows)
        for at in range(_GIVEN.shape[0]):
            number, column = _GIVEN[at, 0], _GIVEN[at, 1]
            for row in range(first, last):
                f[row, number] = F[column, row]
        for row in range(first, last):
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
def to_columns(f: Floats, i: Ints32, why_of_lane: Ints, credit: float, F: Floats, I: Ints) -> None:
    """Write everything that the loop has found out into the columns, but which devices are held and when runs are due."""
    rows = f.shape[0]
    for first in range(0, rows, _BLOCK):
        last = min(first + _BLOCK, rows)
        for at in range(_FOUND.shape[0]):
            number, column = _FOUND[at, 0], _FOUND[at, 1]
            for row in range(first, last):
                F[column, row] = f[row, number]
        for row in range(first, last):
            state, starts = i[row, r.STATE], i[row, r.STARTS]
            F[c.SAFE, row] = f[row, r.WORK] if state == COMPLETED else f[row, r.DONE]
            I[c.PHASE, row] = state
            I[c.PREEMPTIONS, row] = i[row, r.STOPS]
            I[c.EPOCH, row] += starts
            I[c.INTERVAL, row] = i[row, r.INTERVAL]
            I[c.SPREAD, row] = i[row, r.SPREAD]
            if starts > 0:
                I[c.RESTARTS, row] += starts - 1
                F[c.MARK, row] = f[row, r.FIRST_START] + credit
            if state == RUNNING:
                I[c.HELD, row] = i[row, r.NEED]
                I[c.OPTION, row] = i[row, r.OPTION]
            else:
                I[c.HELD, row] = 0
                I[c.OPTION, row] = -1
            # why it waits: what was found for it, or for the one in front of it that asks for as much
            why = i[row, r.WHY]
            if state == PENDING and why == _ARRIVED and why_of_lane[i[row, r.LANE]] != 0:
                why = why_of_lane[i[row, r.LANE]]
            I[c.REASON, row] = why
