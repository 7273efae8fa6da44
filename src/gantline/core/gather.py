"""Columns that move with time, read at one instant."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING


@kernel
def elapsed(F: Floats, I: Ints, row: int, now: float) -> float:
    """Seconds the row has progressed since its last change."""
    if I[Job.PHASE, row] == RUNNING and now > F[Job.SINCE, row]:
        return float(now - F[Job.SINCE, row])
    return 0.0


def moving(F: Floats, I: Ints, rows: Ints, now: float, which: int) -> Floats:
    """A column that moves with time: which is DONE, SERVICE, GPUTIME, or ESTIMATE for remaining work."""
    out = np.empty(len(rows))
    _read_moving(F, I, rows, float(now), which, out)
    return out


@kernel
def _read_moving(F: Floats, I: Ints, rows: Ints, now: float, which: int, out: Floats) -> None:
    for i in range(rows.shape[0]):
        row = rows[i]
        dt = elapsed(F, I, row, now)
        if which == Job.DONE:
            out[i] = F[Job.DONE, row] + F[Job.RATE, row] * dt
        elif which == Job.SERVICE:
            out[i] = F[Job.SERVICE, row] + dt
        elif which == Job.GPUTIME:
            out[i] = F[Job.GPUTIME, row] + I[Job.HELD, row] * dt
        else:
            out[i] = F[Job.ESTIMATE, row] - (F[Job.DONE, row] + F[Job.RATE, row] * dt)
