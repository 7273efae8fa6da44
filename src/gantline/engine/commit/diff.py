"""Compares what a plan asks for with what is granted, in one pass: which rows keep what they have, change, or stop; and writes down, when
that is done, what was granted.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments
from gantline.core.tables import Matrices
from gantline.engine.commit.request import (
    FIRST_RAW,
    GROUPS,
    LIMIT,
    LINES_COUNT,
    OTHER,
    PLACES,
    SAME,
    STOPS,
    UNTIL,
    GrantedByRow,
    GrantedColumns,
    PlanRequest,
    team_of,
)
from gantline.engine.lists import Lists, RowCount
from gantline.engine.settings import Amount, EngineRules


@kernel
def compare(
    t: Matrices,
    lists: Lists,
    granted: GrantedByRow,
    special: Bools,
    asked: PlanRequest,
    count: int,
    spared: Ints,
    plan: int,
    now: float,
    rules: EngineRules,
) -> None:
    """Sort the rows; those that keep what they have lose the reason and lease of an earlier plan, all others are only listed.

    `special` are rows that have more than a gang with an option, `spared` rows that go on although the plan does not name them.
    """
    asked.changed[: asked.found[GROUPS]] = False
    for k in range(count):
        asked.named_by[asked.rows[k]] = plan
        asked.kept[k] = _may_be_touched(t, asked.rows[k]) and _keeps(t, granted, special, asked, k)
        if not asked.kept[k] and asked.group[k] >= 0:
            asked.changed[asked.groups.code[k]] = True
    for k in range(spared.shape[0]):
        asked.named_by[spared[k]] = plan
    places = 0
    for k in range(count):
        if asked.group[k] >= 0 and asked.changed[asked.groups.code[k]]:
            asked.kept[k] = False  # a group of which one member changes changes as a whole
        row = asked.rows[k]
        if not asked.kept[k] and (t.I[Job.PHASE, row] == PENDING or _may_be_touched(t, row)):
            asked.places[places] = k
            places += 1
    for k in range(count - 1, -1, -1):  # of several assignments of one row the first counts
        if asked.kept[k]:
            renew(t, asked, k)
    stops, min_run = 0, rules.amount[Amount.MIN_RUN]
    for k in range(lists.number[RowCount.ACTIVE]):
        row = lists.active[k]
        if asked.named_by[row] != plan and _may_be_touched(t, row) and now >= t.F[Job.LAST_START, row] + min_run:
            asked.stops[stops] = row
            stops += 1
    asked.found[PLACES], asked.found[STOPS] = places, stops


@kernel
def renew(t: Matrices, asked: PlanRequest, k: int) -> None:
    """The lease ends as the plan says, or at the limit of the run, which counts from its start."""
    row = asked.rows[k]
    end = t.F[Job.LAST_START, row] + asked.number[LIMIT, k]
    t.I[Job.REASON, row] = 0
    t.F[Job.LIMIT_END, row] = end
    t.F[Job.UNTIL, row] = np.minimum(asked.number[UNTIL, k], end)


@kernel
def _may_be_touched(t: Matrices, row: int) -> bool:
    """Whether a row holds something, and is neither locked nor in flight."""
    phase = t.I[Job.PHASE, row]
    return bool((phase == STARTING or phase == RUNNING) and t.I[Job.LOCKED, row] == 0)


@kernel
def _keeps(t: Matrices, granted: GrantedByRow, special: Bools, asked: PlanRequest, k: int) -> bool:
    """Whether a row holds just what the plan gives it."""
    row = asked.rows[k]
    if asked.by[k] == SAME or asked.by[k] == OTHER:
        return bool(asked.by[k] == SAME)
    if not asked.made_up[k] and (asked.option[k] != t.I[Job.OPTION, row] or asked.option[k] < 0):
        return False
    if not special[row]:
        return bool(asked.plain[k])
    if granted.epoch[row] != t.I[Job.EPOCH, row] or not asked.alike[k] or team_of(asked.groups, k) != granted.team[row]:
        return False
    for n in range(asked.found[LINES_COUNT]):
        line = asked.lines[n]
        now, before = asked.number[line, k], granted.number[line, row]
        both_unsaid = line >= FIRST_RAW and now != now and before != before
        if now != before and not both_unsaid and (line < FIRST_RAW or asked.made_up[k]):
            return False
    return True


NOT_GRANTED, GRANTED, IN_PART = range(3)  # in part: all but other CPUs or the like


def note_granted(granted: GrantedColumns, table: Assignments, asked: PlanRequest, places: Ints, end: Ints) -> None:
    """Write down what the rows of these places were granted, by how their turns ended."""
    _note_granted(granted.state.matrices, granted.columns, asked, places, end)
    got = places[end != NOT_GRANTED]
    granted.note_lists(table, got.tolist(), asked.rows[got].tolist())


@kernel
def _note_granted(t: Matrices, granted: GrantedByRow, asked: PlanRequest, places: Ints, end: Ints) -> None:
    for n in range(places.shape[0] - 1, -1, -1):  # of several assignments of one row the first counts
        k = places[n]
        row = asked.rows[k]
        if end[n] == NOT_GRANTED:
            granted.epoch[row] = -1
            continue
        reason = t.I[Job.REASON, row] if end[n] == IN_PART else 0
        renew(t, asked, k)
        t.I[Job.REASON, row] = reason
        granted.team[row] = team_of(asked.groups, k)
        granted.epoch[row] = t.I[Job.EPOCH, row] if end[n] == GRANTED else -1
        for m in range(asked.found[LINES_COUNT]):
            granted.number[asked.lines[m], row] = asked.number[asked.lines[m], k]
