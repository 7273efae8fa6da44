"""Moves to an instant: which rows have finished, which have arrived, and when the next event is."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import HELD_BACK, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.gang import complete, set_due
from gantline.engine.lists import Lists, RowCount
from gantline.engine.log import LogColumns
from gantline.engine.ranks import leave, sort_rows
from gantline.engine.settings import EngineRules, Switch
from gantline.engine.walk.walk import walk

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)


@kernel
def finish_due(t: Matrices, lists: Lists, now: float, rules: EngineRules, log: LogColumns) -> None:
    """Complete every gang that has done its work by `now`, and raise estimates that turned out too low."""
    F, running = t.F, lists.running
    finished = 0
    kept = 0
    boundary = rules.switch[Switch.BOUNDARY] == 1
    for i in range(lists.number[RowCount.RUNNING]):
        row = running[i]
        if t.I[Job.PHASE, row] == RUNNING and F[Job.DUE, row] <= now:
            at = F[Job.SINCE, row] + (F[Job.WORK, row] - F[Job.DONE, row]) / F[Job.RATE, row]
            if at <= now:
                complete(t, row, now if boundary else at, log)
                leave(lists, row)
                finished += 1
                continue
            # its estimate was too low. Mean residual life of a heavy tail: as long again
            F[Job.ESTIMATE, row] = 2.0 * (F[Job.DONE, row] + F[Job.RATE, row] * max(0.0, now - F[Job.SINCE, row]))
            set_due(F, row)
        running[kept] = row
        kept += 1
    lists.number[RowCount.RUNNING] = kept
    lists.number[RowCount.FINISHED] = finished


@kernel
def arrive(F: Floats, I: Ints, lists: Lists, now: float, load_limit: float) -> None:
    """Let rows in that have arrived by `now`: all of them, or in order while demand is within the limit (GPUs), as Blox does."""
    rows, count = F.shape[1], lists.number
    while count[RowCount.NEXT] < rows and F[Job.ARRIVAL, count[RowCount.NEXT]] <= now:
        row = count[RowCount.NEXT]
        I[Job.PHASE, row] = HELD_BACK
        I[Job.REASON, row] = _LOAD_LIMIT
        F[Job.SINCE, row] = F[Job.ARRIVAL, row]
        count[RowCount.NEXT] += 1
    count[RowCount.ADMITTED] = 0
    if count[RowCount.HELD] >= count[RowCount.NEXT]:
        return
    demand = 0.0
    if load_limit != np.inf:
        for i in range(count[RowCount.ACTIVE]):
            demand += I[Job.GPUS, lists.active[i]]
    while count[RowCount.HELD] < count[RowCount.NEXT] and demand <= load_limit:
        row = count[RowCount.HELD]
        count[RowCount.HELD] += 1
        demand += I[Job.GPUS, row]
        admit(F, I, lists, row, now)
        count[RowCount.ADMITTED] += 1


@kernel
def admit(F: Floats, I: Ints, lists: Lists, row: int, now: float) -> None:
    """One row may compete from now on. It is last until it is ranked."""
    I[Job.PHASE, row] = PENDING
    I[Job.REASON, row] = _ARRIVED
    F[Job.ADMITTED, row] = now
    F[Job.KEY, row] = np.inf
    active, count = lists.active, lists.number
    at = count[RowCount.ACTIVE]
    while at > 0 and active[at - 1] > row:
        active[at] = active[at - 1]
        at -= 1
    active[at] = row
    count[RowCount.ACTIVE] += 1
    lists.waiting[count[RowCount.WAITING]] = row
    count[RowCount.WAITING] += 1
    lists.demand[I[Job.SMALLEST, row]] += 1


@kernel
def next_finish(F: Floats, I: Ints, lists: Lists) -> float:
    """The next instant at which a running gang is done or its estimate proves too low."""
    soonest = np.inf
    for i in range(lists.number[RowCount.RUNNING]):
        row = lists.running[i]
        if I[Job.PHASE, row] == RUNNING and F[Job.DUE, row] < soonest:
            soonest = F[Job.DUE, row]
    return soonest


@kernel
def soonest(F: Floats, rows: Ints, count: int, column: int) -> float:
    """The least of a column over the first so many rows of a list; infinity: there is none."""
    found = np.inf
    for i in range(count):
        found = min(found, F[column, rows[i]])
    return found


@kernel
def next_movable(F: Floats, lists: Lists, now: float, min_run: float) -> float:
    """The next instant at which a gang has had its minimum run time, so that it may be stopped."""
    soonest = np.inf
    if min_run > 0.0:
        for i in range(lists.number[RowCount.RUNNING]):
            at = F[Job.LAST_START, lists.running[i]] + min_run
            if now < at < soonest:
                soonest = at
    return soonest


@kernel
def rank_and_walk(
    t: Matrices, lists: Lists, key: Floats, rows: Ints, now: float, rules: EngineRules, log: LogColumns, scratch: Ints, out: Ints
) -> float:
    """One decision in the ranking form: keys of the snapshot's rows in, gangs started and stopped. Returns the next finish.

    A key that is not a number is refused before anything is touched: then NaN is returned.
    """
    for i in range(key.shape[0]):
        if np.isnan(key[i]):
            return np.nan
    for i in range(key.shape[0]):
        t.F[Job.KEY, rows[i]] = key[i]
    sort_rows(t.F, lists.running, lists.number[RowCount.RUNNING])
    sort_rows(t.F, lists.waiting, lists.number[RowCount.WAITING])
    walk(t, lists, now, rules, log, scratch, out)
    return next_finish(t.F, t.I, lists)
