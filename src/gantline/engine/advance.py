"""Moves to an instant: which rows have finished, which have arrived, and when the next event is."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import HELD_BACK, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.gang import complete, set_due
from gantline.engine.lists import Lists
from gantline.engine.log import LogColumns
from gantline.engine.ranks import leave, sort_rows
from gantline.engine.settings import EngineRules
from gantline.engine.walk.walk import walk

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)


@kernel
def finish_due(t: Matrices, lists: Lists, now: float, rules: EngineRules, log: LogColumns) -> None:
    """Complete every gang that has done its work by `now`, and raise estimates that turned out too low."""
    F, running = t.F, lists.running
    finished = 0
    kept = 0
    boundary = rules.switch[s.S_BOUNDARY] == 1
    for i in range(lists.number[ls.RUNNING]):
        row = running[i]
        if t.I[c.PHASE, row] == RUNNING and F[c.DUE, row] <= now:
            at = F[c.SINCE, row] + (F[c.WORK, row] - F[c.DONE, row]) / F[c.RATE, row]
            if at <= now:
                complete(t, row, now if boundary else at, log)
                leave(lists, row)
                finished += 1
                continue
            # its estimate was too low. Mean residual life of a heavy tail: as long again
            F[c.ESTIMATE, row] = 2.0 * (F[c.DONE, row] + F[c.RATE, row] * max(0.0, now - F[c.SINCE, row]))
            set_due(F, row)
        running[kept] = row
        kept += 1
    lists.number[ls.RUNNING] = kept
    lists.number[ls.FINISHED] = finished


@kernel
def arrive(F: Floats, I: Ints, lists: Lists, now: float, load_limit: float) -> None:
    """Let rows in that have arrived by `now`: all of them, or in order while demand is within the limit (GPUs), as Blox does."""
    rows, count = F.shape[1], lists.number
    while count[ls.NEXT] < rows and F[c.ARRIVAL, count[ls.NEXT]] <= now:
        row = count[ls.NEXT]
        I[c.PHASE, row] = HELD_BACK
        I[c.REASON, row] = _LOAD_LIMIT
        F[c.SINCE, row] = F[c.ARRIVAL, row]
        count[ls.NEXT] += 1
    count[ls.ADMITTED] = 0
    if count[ls.HELD] >= count[ls.NEXT]:
        return
    demand = 0.0
    if load_limit != np.inf:
        for i in range(count[ls.ACTIVE]):
            demand += I[c.GPUS, lists.active[i]]
    while count[ls.HELD] < count[ls.NEXT] and demand <= load_limit:
        row = count[ls.HELD]
        count[ls.HELD] += 1
        demand += I[c.GPUS, row]
        admit(F, I, lists, row, now)
        count[ls.ADMITTED] += 1


@kernel
def admit(F: Floats, I: Ints, lists: Lists, row: int, now: float) -> None:
    """One row may compete from now on. It is last until it is ranked."""
    I[c.PHASE, row] = PENDING
    I[c.REASON, row] = _ARRIVED
    F[c.ADMITTED, row] = now
    F[c.KEY, row] = np.inf
    active, count = lists.active, lists.number
    at = count[ls.ACTIVE]
    while at > 0 and active[at - 1] > row:
        active[at] = active[at - 1]
        at -= 1
    active[at] = row
    count[ls.ACTIVE] += 1
    lists.waiting[count[ls.WAITING]] = row
    count[ls.WAITING] += 1
    lists.demand[I[c.SMALLEST, row]] += 1


@kernel
def next_finish(F: Floats, I: Ints, lists: Lists) -> float:
    """The next instant at which a running gang is done or its estimate proves too low."""
    soonest = np.inf
    for i in range(lists.number[ls.RUNNING]):
        row = lists.running[i]
        if I[c.PHASE, row] == RUNNING and F[c.DUE, row] < soonest:
            soonest = F[c.DUE, row]
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
        for i in range(lists.number[ls.RUNNING]):
            at = F[c.LAST_START, lists.running[i]] + min_run
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
        t.F[c.KEY, rows[i]] = key[i]
    sort_rows(t.F, lists.running, lists.number[ls.RUNNING])
    sort_rows(t.F, lists.waiting, lists.number[ls.WAITING])
    walk(t, lists, now, rules, log, scratch, out)
    return next_finish(t.F, t.I, lists)
