"""Runs whose work does not count: a gang with purpose `trial` begins where the job stands, and when the trial ends the job stands there
again, with its time and its devices spent (Lucid's profiler; Hu et al., ASPLOS 2023, section 3.2).

A job that has done all its work in a trial has finished. A gang never turns from a trial into a run that counts, or back, without a stop
and a start: its processes have what they did in memory.
"""

from __future__ import annotations

from gantline.core.columns import Job
from gantline.core.grant import Grant
from gantline.core.phases import Phase
from gantline.core.plan import TRIAL, Assignment
from gantline.engine.gang import set_due, settle
from gantline.engine.state import State


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
