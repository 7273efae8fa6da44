"""What reports of an executor do to the tables, once it is known which row they are about."""

from __future__ import annotations

import math

from gantline.core.columns import Job
from gantline.core.gather import elapsed
from gantline.core.phases import Phase
from gantline.engine.executor import News, Report
from gantline.engine.gang import complete, set_due
from gantline.engine.grants import Grants
from gantline.engine.in_flight import InFlight
from gantline.engine.ranks import leave
from gantline.engine.reality import Promise
from gantline.engine.state import State


def start_late(grants: Grants, row: int, when: float, promise: Promise) -> None:
    """It runs since then, and not since it was decided."""
    t = grants.state.tables
    grant = t.granted.get(row)
    t.F[Job.SINCE, row], t.F[Job.LAST_START, row] = when + promise.pause, when
    if grant is not None:
        if math.isfinite(grant.assignment.limit):
            t.F[Job.LIMIT_END, row] = when + grant.assignment.limit
            t.F[Job.UNTIL, row] = min(grant.assignment.until, when + grant.assignment.limit)
        if grant.fluid:
            grants.fluid.start(row)
        grants.refresh()  # its neighbours may have changed since
    set_due(t.F, row)


def note_progress(state: State, row: int, report: Report) -> None:
    """What is saved is safe, and how much is left is known better than before."""
    t = state.tables
    t.F[Job.SAFE, row] = max(float(t.F[Job.SAFE, row]), report.done)
    for name, value in report.metrics.items():
        t.metric(name)[row] = value
    if report.total > float(t.F[Job.DONE, row]):
        t.F[Job.ESTIMATE, row] = report.total
        t.unestimated.discard(row)
        set_due(t.F, row)


def correct(state: State, row: int, report: Report, most: float) -> None:
    """The executor's report corrects what was settled when the row was ordered to stop; not more than `most` of it counts."""
    F, done = state.tables.F, min(report.done, most)
    if report.news is News.FAILED:
        F[Job.LOST, row] += max(0.0, float(F[Job.DONE, row]) - done)
    F[Job.DONE, row] = F[Job.SAFE, row] = done


def complete_row(state: State, in_flight: InFlight, row: int, at: float, unsent: bool) -> bool:
    """The job has finished at that time, if it is still there; `unsent`: its last grant was never ordered, so it has no length."""
    F, I = state.tables.F, state.tables.I
    phase = Phase(int(I[Job.PHASE, row]))
    if not (phase.active or state.withheld.get(row) is Phase.HELD):
        return False
    state.withheld.pop(row, None)  # a row that finishes while on hold has finished
    if math.isinf(F[Job.WORK, row]):  # its amount of work was unknown until now
        F[Job.WORK, row] = F[Job.DONE, row] + F[Job.RATE, row] * elapsed(F, I, row, at)
    interval = int(I[Job.INTERVAL, row])
    complete(state.matrices, row, at, state.log.columns)
    if unsent and interval >= 0:
        state.log.never_held(interval)
    in_flight.forget(row)
    if phase.active:
        leave(state.lists, row)
    return True
