"""What a plan asks for, as columns in the order of the plan: one form for everything that assignments can say."""

from __future__ import annotations

from operator import eq
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.plan import Assignments
from gantline.engine.commit.granted_columns import DEFAULTS, LIMIT, LINES, LISTS, MODE, NUMBERS, RAW, TOGETHER, UNTIL, GrantedColumns
from gantline.engine.group_numbers import GroupNumbers, number_groups, room_for_groups, write_teams
from gantline.engine.option_rows import OptionRows
from gantline.engine.state import State
from gantline.engine.wanted import divides_time

#: how an assignment is compared with what its row was granted: by its columns, or it is known to be the same, or known to be another
BY_COLUMNS, SAME, OTHER = range(3)


class Request(NamedTuple):
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
        self.columns = Request(
            rows, option, group, number, named, made_up, plain, alike, by, groups, lines, kept, changed, places, stops, named_by, found
        )

    def read(self, rows: Ints, table: Assignments) -> Request:
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


__all__ = ["BY_COLUMNS", "GROUPS", "LINES_COUNT", "OTHER", "PLACES", "SAME", "STOPS", "Request", "RequestReader", "divides_time", "filled"]
