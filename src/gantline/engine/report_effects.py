"""What reports of an executor do to the tables, once it is known which row they are about."""

from __future__ import annotations

import math

from gantline.core import columns as c
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
    t.F[c.SINCE, row], t.F[c.LAST_START, row] = when + promise.pause, when
    if grant is not None:
        if math.isfinite(grant.assignment.limit):
            t.F[c.LIMIT_END, row] = when + grant.assignment.limit
            t.F[c.UNTIL, row] = min(grant.assignment.until, when + grant.assignment.limit)
        if grant.fluid:
            grants.fluid.start(row)
        grants.refresh()  # its neighbours may have changed since
    set_due(t.F, row)


def note_progress(state: State, row: int, report: Report) -> None:
    """What is saved is safe, and how much is left is known better than before."""
    t = state.tables
    t.F[c.SAFE, row] = max(float(t.F[c.SAFE, row]), report.done)
    for name, value in report.metrics.items():
        t.metric(name)[row] = value
    if report.total > float(t.F[c.DONE, row]):
        t.F[c.ESTIMATE, row] = report.total
        t.unestimated.discard(row)
        set_due(t.F, row)


def correct(state: State, row: int, report: Report, most: float) -> None:
    """The executor's report corrects what was settled when the row was ordered to stop; not more than `most` of it counts."""
    F, done = state.tables.F, min(report.done, most)
    if report.news is News.FAILED:
        F[c.LOST, row] += max(0.0, float(F[c.DONE, row]) - done)
    F[c.DONE, row] = F[c.SAFE, row] = done


def complete_row(state: State, in_flight: InFlight, row: int, at: float, unsent: bool) -> bool:
    """The job has finished at that time, if it is still there; `unsent`: its last grant was never ordered, so it has no length."""
    F, I = state.tables.F, state.tables.I
    phase = Phase(int(I[c.PHASE, row]))
    if not (phase.active or state.withheld.get(row) is Phase.HELD):
        return False
    state.withheld.pop(row, None)  # a row that finishes while on hold has finished
    if math.isinf(F[c.WORK, row]):  # its amount of work was unknown until now
        F[c.WORK, row] = F[c.DONE, row] + F[c.RATE, row] * elapsed(F, I, row, at)
    interval = int(I[c.INTERVAL, row])
    complete(state.matrices, row, at, state.log.columns)
    if unsent and interval >= 0:
        state.log.never_held(interval)
    in_flight.forget(row)
    if phase.active:
        leave(state.lists, row)
    return True
