"""Compares plans that name groups, modes, fractions, offsets or devices with what the rows were granted. Compiled.

As in `same_grants`, a decision then costs one pass over the plan, and a commit handles only the rows that change, with their groups.
"""

from __future__ import annotations

from operator import eq
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments, Mode
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.group_numbers import GroupNumbers, number_groups, room_for_groups, team_of
from gantline.engine.holdings import Holdings
from gantline.engine.in_force import DEFAULTS, LINES, RAGGED, RAW, SCALARS, InForce, NotedGrants
from gantline.engine.lists import Lists, RowCount
from gantline.engine.option_rows import OptionRows
from gantline.engine.same_grants import WhatChanges
from gantline.engine.seats import GANG_FIRST, SharedSeats
from gantline.engine.state import State

#: what a plan may say to be compared here: numbers that are compared one by one, and what its options follow from
_NUMBERS = frozenset(("mode", "together", "fraction", "offset", "batch", "accumulation"))
_READ = _NUMBERS | {"group", "devices", *RAW}
_NOT_COMPARED = tuple(name for name in RAGGED if name != "devices")
_RAW_LINES = tuple(LINES[name] for name in RAW)
_MODE: Final = LINES["mode"]
_EXCLUSIVE: Final = int(Mode.EXCLUSIVE)
_TIME: Final = int(Mode.TIME)
_DEFERRED: Final = int(Reason.DEFERRED)
_SAME, _CHANGES, _NOT_READ = range(3)
_ANSWERS = (WhatChanges.SAME, WhatChanges.CHANGES, WhatChanges.NOT_READ)


class AskedOfRows(NamedTuple):
    """What a plan says, per assignment, and what comes of it; longer than any plan."""

    rows: Ints
    option: Ints  # which row of the option table it means
    group: Ints
    number: Floats  # (line, assignment), of the lines that are compared
    names: Bools  # whether it names devices
    alike: Bools  # whether they are those that the row was granted
    kept: Bools  # out: whether the row keeps what it has
    groups: GroupNumbers
    changed: Bools  # per group: whether a member changes
    places: Ints  # of the assignments that their rows do not keep
    found: Ints  # how many groups, how many such places, how many lines are compared, and how many rows hold something and are not named
    named: Ints  # per row of the tables: the number of the last compared plan that names it
    lines: Ints  # lines of `number` that are compared
    usual: Floats  # by line: what holds where nothing is asked


class GroupReader:
    """Compares plans with what the rows have, one plan after the other."""

    def __init__(self, state: State, force: InForce, options: OptionRows, books: Holdings) -> None:
        self.state, self.force, self.options, self.books = state, force, options, books
        self._plan = 0
        self._make(0)

    def _make(self, size: int) -> None:
        rows, option, group, named, places = np.zeros((5, size), dtype=np.int64)
        names, alike, kept, changed = np.zeros((4, size), dtype=np.bool_)
        number, lines = np.zeros((len(LINES), size)), np.zeros(len(LINES), dtype=np.int64)
        groups, found = room_for_groups(size), np.zeros(4, dtype=np.int64)
        self.asked = AskedOfRows(rows, option, group, number, names, alike, kept, groups, changed, places, found, named, lines, DEFAULTS)

    def compare(self, rows: Ints, table: Assignments) -> WhatChanges:
        """How the plan differs from what the rows have; `asked.kept` then says which of them keep it."""
        told = {name for name, _ in table.filled_columns()} - {"job"}
        if not told <= _READ or (table.has("devices") and not told.isdisjoint(RAW)):
            return WhatChanges.NOT_READ
        if self.force.has_any(_NOT_COMPARED, rows):
            return WhatChanges.NOT_READ  # such as a trial, which a plan ends by saying nothing of it
        count, state, I = len(rows), self.state, self.state.tables.I
        size = max(state.tables.F.shape[1], count)
        if size > len(self.asked.rows):
            self._make(size)
        asked, force = self.asked, self.force
        asked.rows[:count], asked.group[:count] = rows, table.column("group") if table.has("group") else -1
        asked.option[:count] = self.options.of_table(rows, table) if not told.isdisjoint(RAW) else I[Job.OPTION_FIRST][rows]
        self._enter_devices(rows, table)
        lines = 0
        for name in SCALARS:
            if name in _NUMBERS or force.knows(name):
                asked.lines[lines] = line = LINES[name]
                asked.number[line, :count] = table.column(name) if name in told else DEFAULTS[line]
                lines += 1
        self._plan += 1
        special = state.tables.granted.here(size)
        seats = self.books.seats()
        found = _compare(state.matrices, state.lists, seats, force.with_numbers, special, asked, count, lines, self._plan)
        return _ANSWERS[found]

    @property
    def none_stops(self) -> bool:
        """Whether the last plan names every row that holds something."""
        return bool(self.asked.found[3] == 0)

    def _enter_devices(self, rows: Ints, table: Assignments) -> None:
        asked, count = self.asked, len(rows)
        if not (table.has("devices") or self.force.knows("devices")):
            asked.names[:count], asked.alike[:count] = False, True
            return
        entries = table.entries("devices")
        asked.names[:count] = np.fromiter(map(bool, entries), dtype=np.bool_, count=count)
        asked.alike[:count] = np.fromiter(map(eq, self.force.column("devices")[rows].tolist(), entries), dtype=np.bool_, count=count)


@kernel
def _compare(
    t: Matrices,
    lists: Lists,
    seats: SharedSeats,
    force: NotedGrants,
    special: Bools,
    asked: AskedOfRows,
    count: int,
    lines: int,
    plan: int,
) -> int:
    """Rows that keep what they have lose the reason and lease of an earlier plan; rows that wait and are not named get theirs."""
    groups = number_groups(asked.rows, asked.group, count, asked.groups)
    asked.changed[:groups] = False
    for k in range(count):
        row = asked.rows[k]
        asked.named[row] = plan
        mode = int(asked.number[_MODE, k])
        if mode == _TIME or (mode == _EXCLUSIVE and seats.gang[GANG_FIRST, row] >= 0):
            return _NOT_READ  # which turns there are is read from the whole plan, and so is which gangs may not be together
        asked.kept[k] = _keeps(t, force, special, asked, k, lines)
        if not asked.kept[k] and asked.group[k] >= 0:
            asked.changed[asked.groups.code[k]] = True
    changing = 0
    for k in range(count):
        if asked.group[k] >= 0 and asked.changed[asked.groups.code[k]]:
            asked.kept[k] = False  # a group of which one member changes changes as a whole
        if asked.kept[k]:
            row = asked.rows[k]
            t.I[Job.REASON, row], t.F[Job.LIMIT_END, row], t.F[Job.UNTIL, row] = 0, np.inf, np.inf
        else:
            asked.places[changing] = k
            changing += 1
    stopping = 0
    for k in range(lists.number[RowCount.ACTIVE]):
        row = lists.active[k]
        if asked.named[row] != plan and t.I[Job.PHASE, row] == PENDING:
            t.I[Job.REASON, row] = _DEFERRED
        elif asked.named[row] != plan:
            stopping += 1
    asked.found[0], asked.found[1], asked.found[2], asked.found[3] = groups, changing, lines, stopping
    return _CHANGES if changing + stopping > 0 else _SAME


@kernel
def _keeps(t: Matrices, force: NotedGrants, special: Bools, asked: AskedOfRows, k: int, lines: int) -> bool:
    """Whether a row holds just what the plan gives it, and may be touched."""
    row = asked.rows[k]
    phase = t.I[Job.PHASE, row]
    if not (phase == STARTING or phase == RUNNING) or t.I[Job.LOCKED, row] != 0:
        return False
    if not asked.names[k] and (asked.option[k] != t.I[Job.OPTION, row] or asked.option[k] < 0):
        return False
    if not special[row]:
        plain = asked.group[k] < 0 and not asked.names[k]
        for n in range(lines):
            plain = plain and asked.number[asked.lines[n], k] == asked.usual[asked.lines[n]]
        return plain
    if force.epoch[row] != t.I[Job.EPOCH, row] or not asked.alike[k] or team_of(asked.groups, k) != force.team[row]:
        return False
    for n in range(lines):
        if asked.number[asked.lines[n], k] != force.number[asked.lines[n], row]:
            return False
    for n in range(len(_RAW_LINES)):
        was, usual = force.number[_RAW_LINES[n], row], asked.usual[_RAW_LINES[n]]
        if asked.names[k] and was != usual and (was == was or usual == usual):
            return False
    return True
