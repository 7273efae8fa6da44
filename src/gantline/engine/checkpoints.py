"""Which part of a running gang's work survives a failure.

Work is saved when a gang stops on purpose, moves or changes its size, and every `checkpoint` seconds of a run, counted from
its first progress.
"""

from __future__ import annotations

import math

from gantline.core.columns import Job
from gantline.core.gather import elapsed
from gantline.engine.state import State


def safe_work(state: State, row: int) -> float:
    """Work that survives a failure now."""
    F, I, now = state.tables.F, state.tables.I, state.now
    interval, since, rate = float(F[Job.CHECKPOINT, row]), float(F[Job.SINCE, row]), float(F[Job.RATE, row])
    if interval == 0.0:
        return float(F[Job.DONE, row]) + rate * elapsed(F, I, row, now)
    safe = float(F[Job.SAFE, row])
    if math.isinf(interval) or elapsed(F, I, row, now) == 0.0:
        return safe
    first = _counted_from(state, row)
    last = first + math.floor((now - first) / interval + 1e-9) * interval
    if last <= first or last < since:  # none yet, or none since the speed last changed
        return safe
    return max(safe, float(F[Job.DONE, row]) + rate * (last - since))


def note_saves(state: State, row: int) -> None:
    """A speed changes in the middle of a run: remember what has been saved, and from when on saves are counted."""
    if state.tables.F[Job.CHECKPOINT, row] > 0.0 and state.now > state.tables.F[Job.SINCE, row]:
        safe, first = safe_work(state, row), _counted_from(state, row)
        state.tables.F[Job.SAFE, row] = safe
        state.saves[row] = (int(state.tables.I[Job.EPOCH, row]), first)


def _counted_from(state: State, row: int) -> float:
    """First progress of the present run; a note of an earlier run is void."""
    epoch, first = state.saves.get(row, (-1, 0.0))
    return first if epoch == int(state.tables.I[Job.EPOCH, row]) else float(state.tables.F[Job.SINCE, row])
