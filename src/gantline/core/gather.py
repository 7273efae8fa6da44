"""Columns of the active jobs at one instant: copied from the tables, or computed where they move with time."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING, STARTING, STOPPING

#: codes of columns: its number for one of floats, the complement for one of whole numbers, and so much more for one that moves
MOVING = 1000


@kernel
def elapsed(F: Floats, I: Ints, row: int, now: float) -> float:
    """Seconds the row has progressed since its last change."""
    if I[Job.PHASE, row] == RUNNING and now > F[Job.SINCE, row]:
        return float(now - F[Job.SINCE, row])
    return 0.0


@kernel
def _moved(F: Floats, I: Ints, row: int, now: float, column: int) -> float:
    """One number, see `gather_moving`."""
    ran = elapsed(F, I, row, now)
    if column == Job.SERVICE:
        return float(F[Job.SERVICE, row] + ran)
    if column == Job.GPUTIME:
        return float(F[Job.GPUTIME, row] + I[Job.HELD, row] * ran)
    if column == Job.RATE or column == Job.SINCE:
        runs = STARTING <= I[Job.PHASE, row] <= STOPPING
        if column == Job.RATE:
            return float(F[Job.RATE, row]) if runs else 0.0
        return 0.0 if runs or now < F[Job.SINCE, row] else float(now - F[Job.SINCE, row])
    done = F[Job.DONE, row] + F[Job.RATE, row] * ran
    if column == Job.DONE:
        return float(done)
    left = F[Job.ESTIMATE, row] - done
    return 0.0 if left < 0.0 else float(left)


@kernel
def gather_moving(F: Floats, I: Ints, rows: Ints, now: float, column: int, out: Floats) -> None:
    """A column that moves with time: DONE, SERVICE, GPUTIME, RATE; SINCE: seconds waited; ESTIMATE: what remains of it."""
    for i in range(rows.shape[0]):
        out[i] = _moved(F, I, rows[i], now, column)


def moving(F: Floats, I: Ints, rows: Ints, now: float, column: int) -> Floats:
    """The same as a new array."""
    out = np.empty(len(rows))
    gather_moving(F, I, rows, float(now), column, out)
    return out


@kernel
def gather(F: Floats, I: Ints, rows: Ints, now: float, codes: Ints, floats: Floats, ints: Ints) -> None:
    """Columns by their codes, one per line: of `floats`, or of `ints` where they are whole numbers."""
    for line in range(codes.shape[0]):
        code = codes[line]
        if code >= MOVING:
            gather_moving(F, I, rows, now, code - MOVING, floats[line])
        else:
            for i in range(rows.shape[0]):
                if code >= 0:
                    floats[line, i] = F[code, rows[i]]
                else:
                    ints[line, i] = I[~code, rows[i]]
