"""What a plan asks for, as columns in the order of the plan: one form for everything that assignments can say."""

from __future__ import annotations

from operator import eq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.core.plan import Assignments
from gantline.engine.commit.granted import DEFAULTS, LIMIT, LINES, LISTS, MODE, NUMBERS, RAW, TOGETHER, UNTIL, GrantedColumns
from gantline.engine.option_rows import OptionRows
from gantline.engine.state import State

#: how an assignment is compared with what its row was granted: by its columns, or it is known to be the same, or known to be another
BY_COLUMNS, SAME, OTHER = range(3)


class PlanRequest(NamedTuple):
    """One entry per assignment, unless said otherwise; longer than any plan."""

    rows: Ints
    option: Ints  # which row of the option table is meant, where no devices or parts are named; below zero: impossible
    group: Ints
    number: Floats  # (line, assignment), see `granted_columns.LINES`
    named: Bools  # whether it names devices
    made_up: Bools  # whether its option follows from the devices or parts that it names
    plain: Bools  # whether it says nothing beyond an option and a lease
    alike: Bools  # whether its lists and words are those that the row was granted
    by: Ints  # BY_COLUMNS, SAME or OTHER
    groups: GroupNumbers
    lines: Ints  # the lines of `number` that are compared
    kept: Bools  # whether the row keeps what it has
    changed: Bools  # per group: whether a member changes
    places: Ints  # the places in the plan of assignments that their rows do not keep, and may have
    stops: Ints  # rows that hold something, may be stopped, and are not named
    named_by: Ints  # per row of the tables: the number of the last plan that named it
    found: Ints  # how many lines are compared, how many groups, places and stops there are


LINES_COUNT, GROUPS, PLACES, STOPS, FOUND = range(5)


class RequestReader:
    """Reads the assignments of one plan after the other into the same columns."""

    def __init__(self, state: State, granted: GrantedColumns, options: OptionRows) -> None:
        self.state, self.granted, self.options = state, granted, options
        self.plans = 0
        self._make(0)

    def _make(self, size: int) -> None:
        rows, option, group, by, places, stops, named_by = np.zeros((7, size), dtype=np.int64)
        named, made_up, plain, alike, kept, changed = np.zeros((6, size), dtype=np.bool_)
        number, lines, found = np.zeros((len(LINES), size)), np.zeros(len(LINES), dtype=np.int64), np.zeros(FOUND, dtype=np.int64)
        groups = room_for_groups(size)
        self.columns = PlanRequest(
            rows, option, group, number, named, made_up, plain, alike, by, groups, lines, kept, changed, places, stops, named_by, found
        )

    def read(self, rows: Ints, table: Assignments) -> PlanRequest:
        """The assignments of a plan; `rows` are the rows that they name, one each."""
        count = len(rows)
        size = max(self.state.tables.F.shape[1], count)
        if size > len(self.columns.rows):
            self._make(size)
        self.plans += 1
        asked = self.columns
        asked.rows[:count] = rows
        asked.option[:count] = self.options.of_table(rows, table)
        asked.group[:count] = table.column("group") if table.has("group") else -1
        asked.plain[:count] = table.plain_rows()
        asked.named[:count] = filled(table, "devices")
        asked.made_up[:count] = filled(table, "devices", "parts")
        asked.by[:count] = BY_COLUMNS
        asked.found[GROUPS] = number_groups(asked.rows, asked.group, count, asked.groups) if table.has("group") else 0
        if not table.has("group"):
            asked.groups.code[:count] = -1
        self._read_numbers(table, count)
        self._compare_lists(rows, table)
        return asked

    def _read_numbers(self, table: Assignments, count: int) -> None:
        asked, lines = self.columns, 0
        for line in (MODE, TOGETHER, LIMIT, UNTIL):
            asked.number[line, :count] = DEFAULTS[line]
        made_up = table.has("devices") or table.has("parts")
        for name in (*NUMBERS, *RAW) if made_up else NUMBERS:
            if table.has(name) or self.granted.knows(name):
                asked.lines[lines] = line = LINES[name]
                asked.number[line, :count] = table.column(name) if table.has(name) else DEFAULTS[line]
                lines += 1
        if table.has("until"):
            asked.number[UNTIL, :count] = table.column("until")
        asked.found[LINES_COUNT] = lines

    def _compare_lists(self, rows: Ints, table: Assignments) -> None:
        alike = self.columns.alike[: len(rows)]
        alike[:] = True
        for name in LISTS:
            if table.has(name) or self.granted.knows(name):
                granted = self.granted.column(name)[rows].tolist()
                alike &= np.fromiter(map(eq, granted, table.entries(name)), dtype=np.bool_, count=len(rows))

    def teams(self, count: int) -> Ints:
        """Per assignment a number that stands for the rows of its group (0: none)."""
        found = np.zeros(count, dtype=np.int64)
        write_teams(self.columns.groups, found)
        return found

    def names(self, rows: Ints) -> Bools:
        """Which of these rows the plan names, or leaves as they are."""
        found: Bools = self.columns.named_by[rows] == self.plans
        return found


def filled(table: Assignments, *names: str) -> Bools:
    """Which assignments say something in one of these columns of lists and words."""
    found: Bools = np.zeros(len(table), dtype=np.bool_)
    for name in names:
        if table.has(name):
            found |= np.fromiter(map(bool, table.entries(name)), dtype=np.bool_, count=len(table))
    return found


# The groups of a plan, numbered as they come, and what stands for the rows of each.


class GroupNumbers(NamedTuple):
    """Room for the groups of a plan."""

    code: Ints  # per assignment: a number for its group, from zero on (below zero: it is in none)
    sums: NDArray[np.uint64]  # per group: a number that tells sets of rows apart
    slots: Ints  # (the plan's number for a group + 1, its code), by a hash of the former


def room_for_groups(size: int) -> GroupNumbers:
    """Room for plans of so many assignments."""
    slots = np.zeros((2, 1 << (2 * size + 1).bit_length()), dtype=np.int64)
    return GroupNumbers(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.uint64), slots)


@kernel
def number_groups(rows: Ints, group: Ints, count: int, found: GroupNumbers) -> int:
    """Number the groups of the first so many assignments. How many groups there are."""
    groups, size = 0, 2
    while size < 2 * count:
        size *= 2
    found.slots[0, :size] = 0
    for k in range(count):
        found.code[k] = -1
        number = group[k]
        if number < 0:
            continue
        at = (number * 0x9E3779B1) & (size - 1)
        while found.slots[0, at] != 0 and found.slots[0, at] != number + 1:
            at = (at + 1) & (size - 1)
        if found.slots[0, at] == 0:
            found.slots[0, at], found.slots[1, at] = number + 1, groups
            found.sums[groups] = np.uint64(0)
            groups += 1
        found.code[k] = found.slots[1, at]
        found.sums[found.code[k]] += _scrambled(np.uint64(rows[k]))
    return groups


@kernel
def team_of(found: GroupNumbers, k: int) -> np.int64:
    """What stands for the rows of the group of an assignment; 0: it is in none."""
    return np.int64(found.sums[found.code[k]] >> np.uint64(1)) if found.code[k] >= 0 else np.int64(0)


@kernel
def write_teams(found: GroupNumbers, teams: Ints) -> None:
    """The same for all assignments."""
    for k in range(teams.shape[0]):
        teams[k] = team_of(found, k)


@kernel
def _scrambled(row: np.uint64) -> np.uint64:
    """Numbers whose sum tells sets of rows apart, but for one chance in 10^19 (the finaliser of SplitMix64)."""
    mixed = (row + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
