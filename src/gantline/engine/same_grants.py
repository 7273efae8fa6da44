"""Compares plans that give only devices, or only options, with what the rows have already.

This is what a decision costs when a policy names every row each time and few of them change: one comparison per gang, and one pass over
the active rows. A commit handles only the others; where these only wait for their start, see `only_starts`.
"""

from __future__ import annotations

from enum import Enum
from operator import eq
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.gang_turns import Change, GangTurns, GangWork, Paid
from gantline.engine.in_force import InForce
from gantline.engine.lists import Lists, RowCount
from gantline.engine.state import State

_DEFERRED = int(Reason.DEFERRED)


class WhatChanges(Enum):
    """How a plan differs from what the rows have."""

    NOT_READ = "it says more than is compared here"
    SAME = "every row has what the plan gives it"
    ONLY_STARTS = "some rows wait for their start, all others keep what they have"
    CHANGES = "a row has to stop or to change, or may not be touched"


class Seen(NamedTuple):
    """What a comparison reads and writes, per assignment of a plan; longer than any plan, because allocating costs more than comparing."""

    rows: Ints
    option: Ints  # which of its options the row shall have; below zero: the first
    kept: Bools  # in: whether it names the devices that the row was granted; out: whether the row keeps what it has
    named: Ints  # per row of the tables: the number of the last compared plan that names it
    places: Ints  # of the waiting rows, in the plan


class PlanReader:
    """Compares plans with what the rows have, one plan after the other."""

    def __init__(self, state: State, force: InForce) -> None:
        self.state, self.force = state, force
        self.waiting = 0  # how many rows the last comparison listed, to be started
        self._number = 0
        self._make(0, 0)

    def _make(self, rows: int, devices: int) -> None:
        listed, work, places = (np.zeros(size, dtype=np.int64) for size in (rows + devices, (len(GangWork), rows), rows))
        columns = [np.zeros(rows, dtype=np.int64) for _ in range(5)]
        self.seen = Seen(columns[0], columns[1], np.zeros(rows, dtype=np.bool_), columns[2], places)
        self.turns = GangTurns(columns[3], columns[4], work, listed)  # of the waiting rows, filled by the comparison

    def by_devices(self, rows: Ints, table: Assignments) -> WhatChanges:
        """Whether rows keep their devices."""
        granted, asked = self.force.column("devices")[rows].tolist(), table.entries("devices")
        same = np.fromiter(map(eq, granted, asked), dtype=np.bool_, count=len(rows))
        if not all(asked):  # an assignment without devices means an option
            same &= np.fromiter(map(bool, asked), dtype=np.bool_, count=len(rows))
        self._fit(len(rows))
        self.seen.kept[: len(rows)] = same
        return self._compare(rows, True)

    def by_option(self, rows: Ints, table: Assignments) -> WhatChanges:
        """Whether rows keep their option."""
        self._fit(len(rows))
        self.seen.option[: len(rows)] = table.column("option") if table.has("option") else -1
        return self._compare(rows, False)

    def _fit(self, plan: int) -> None:
        t = self.state.tables
        rows, devices = max(t.F.shape[1], plan), t.D.shape[1]
        if rows > len(self.seen.rows) or rows + devices > len(self.turns.listed):
            self._make(rows, devices)

    def _compare(self, rows: Ints, by_devices: bool) -> WhatChanges:
        state = self.state
        self._number += 1
        self.seen.rows[: len(rows)] = rows
        changes, self.waiting = _compare(
            state.matrices, state.lists, self.seen, self.turns, self.force.epoch, len(rows), by_devices, self._number
        )
        return WhatChanges.CHANGES if changes else WhatChanges.ONLY_STARTS if self.waiting else WhatChanges.SAME


@kernel
def _compare(
    t: Matrices, lists: Lists, seen: Seen, turns: GangTurns, epoch: Ints, count: int, by_devices: bool, number: int
) -> tuple[bool, int]:
    """Rows that keep what they have lose the reason and lease of an earlier plan; waiting rows are listed; no other row is touched."""
    I, waiting, more = t.I, 0, False
    for k in range(count):
        row = seen.rows[k]
        seen.named[row] = number
        phase, chosen = I[Job.PHASE, row], seen.option[k]
        known = by_devices or chosen < I[Job.OPTION_COUNT, row]
        option = I[Job.OPTION_FIRST, row] + max(chosen, 0)
        keeps = (phase == STARTING or phase == RUNNING) and I[Job.LOCKED, row] == 0
        if by_devices:
            keeps = keeps and seen.kept[k] and I[Job.HEAD, row] >= 0 and epoch[row] == I[Job.EPOCH, row]
        else:
            keeps = keeps and known and I[Job.OPTION, row] == option
        seen.kept[k] = keeps
        if keeps:
            I[Job.REASON, row] = 0
            t.F[Job.LIMIT_END, row] = np.inf
            t.F[Job.UNTIL, row] = np.inf
        elif phase == PENDING and known:
            seen.places[waiting], turns.rows[waiting], turns.options[waiting] = k, row, option
            turns.work[GangWork.CHANGE, waiting], turns.work[GangWork.ACT, waiting] = Change.WAITS, Paid.NOTHING
            waiting += 1
        else:
            more = True
    for k in range(lists.number[RowCount.ACTIVE]):
        row = lists.active[k]
        more = more or (seen.named[row] != number and I[Job.PHASE, row] != PENDING)
    if more:
        return True, waiting
    for k in range(lists.number[RowCount.ACTIVE]):
        row = lists.active[k]
        if seen.named[row] != number:
            I[Job.REASON, row] = _DEFERRED
    return False, waiting
