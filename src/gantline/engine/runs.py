"""Runs of gangs: which part of their work survives a failure, and which runs do not count.

Work is saved when a gang stops on purpose, moves or changes its size, and every `checkpoint` seconds of a run, counted from its first
progress.
"""

from __future__ import annotations

import math

from gantline.core.columns import Job, elapsed
from gantline.core.grant import Grant
from gantline.core.phases import Phase
from gantline.core.plan import TRIAL, Assignment
from gantline.engine.gang import set_due, settle
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


# Runs whose work does not count: a gang with purpose `trial` begins where the job stands, and when the trial ends the
# job stands there again, with its time and its devices spent (Lucid's profiler; Hu et al., ASPLOS 2023, section 3.2).
#
# A job that has done all its work in a trial has finished. A gang never turns from a trial into a run that counts, or
# back, without a stop and a start: its processes have what they did in memory.


def is_trial(grant: Grant | None) -> bool:
    """Whether what a gang does by this grant is discarded."""
    return grant is not None and grant.assignment.purpose == TRIAL


def begins_again(grant: Grant | None, item: Assignment) -> bool:
    """Whether a gang that holds something must stop before it can have this."""
    return is_trial(grant) != (item.purpose == TRIAL)


def note_trials(state: State) -> None:
    """After a commit: remember where jobs stand whose trial begins."""
    t = state.tables
    for row, grant in t.granted.items():
        if is_trial(grant) and row not in t.trials:
            t.trials[row] = float(t.F[Job.DONE, row])


def discard_trials(state: State) -> None:
    """Jobs whose trial has ended, by whatever cause, stand where they stood before it."""
    t = state.tables
    F, I = t.F, t.I
    for row in [row for row in t.trials if not is_trial(t.granted.get(row))]:
        before = t.trials.pop(row)
        if not Phase(int(I[Job.PHASE, row])).terminal:
            settle(F, I, row, state.now)
            F[Job.DONE, row] = F[Job.SAFE, row] = before
            set_due(F, row)
