"""Columns that move with time, read at one instant."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING


@kernel
def elapsed(F: Floats, I: Ints, row: int, now: float) -> float:
    """Seconds the row has progressed since its last change."""
    if I[c.PHASE, row] == RUNNING and now > F[c.SINCE, row]:
        return float(now - F[c.SINCE, row])
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
        if which == c.DONE:
            out[i] = F[c.DONE, row] + F[c.RATE, row] * dt
        elif which == c.SERVICE:
            out[i] = F[c.SERVICE, row] + dt
        elif which == c.GPUTIME:
            out[i] = F[c.GPUTIME, row] + I[c.HELD, row] * dt
        else:
            out[i] = F[c.ESTIMATE, row] - (F[c.DONE, row] + F[c.RATE, row] * dt)
