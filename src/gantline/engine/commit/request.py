"""What a plan asks for, and what each row was last granted, in the same columns: one is compared with the other in bulk."""

from __future__ import annotations

from dataclasses import replace
from operator import eq
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import HOST_RESOURCE_NAMES
from gantline.core.grant import Grant, Worker
from gantline.core.jit import kernel
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignments, Mode
from gantline.engine.holdings import Holdings
from gantline.engine.option_rows import OptionRows
from gantline.engine.state import State

#: what makes a grant more than a gang with an option; the option says the rest, and groups are compared by their members
NUMBERS = ("required", "mode", "together", "size", "turns", "fraction", "memory_cap", "offset", "batch", "accumulation", "share", "limit")
#: what was asked of the option; compared only where the option follows from named devices or parts
RAW = ("option", "gpus", "type", "span", *HOST_RESOURCE_NAMES)
LISTS = ("devices", "nodes", "parts", "within", "purpose")
#: where the numbers are in `Granted.number` and `PlanRequest.number`; a lease (`until`) is written down and never compared
LINES = {name: line for line, name in enumerate((*NUMBERS, *RAW, "until"))}
FIRST_RAW: Final = len(NUMBERS)
MODE: Final = LINES["mode"]
TOGETHER: Final = LINES["together"]
LIMIT: Final = LINES["limit"]
UNTIL: Final = LINES["until"]
DEFAULTS: Floats = np.array([ASSIGNMENT_DEFAULTS[name] for name in LINES], dtype=np.float64)


class GrantedByRow(NamedTuple):
    """What rows were granted, by row, as kernels take it."""

    epoch: Ints  # the grant that a plan is compared with; below zero: none is known
    team: Ints  # stands for the rows of its group (0: none)
    number: Floats  # (line, row), see `LINES`


class GrantedColumns:
    """Columns of requests that were granted, by row; void from the next grant of the row on."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._lists: dict[str, NDArray[Any]] = {}
        self._asked: set[str] = set()  # what was ever asked for
        none: Ints = np.zeros(0, dtype=np.int64)
        self._columns = GrantedByRow(none, none, np.zeros((len(LINES), 0)))
        self.shares: tuple[NDArray[Any], ...] | None = None  # the shares of time as they were last given, all of them

    @property
    def columns(self) -> GrantedByRow:
        """The columns, as long as the tables are."""
        known, rows = self._columns, self.state.tables.F.shape[1]
        if len(known.epoch) < rows:
            epoch, team = _longer(known.epoch, rows, -1), _longer(known.team, rows, 0)
            number = np.tile(DEFAULTS[:, None], rows)
            number[:, : known.number.shape[1]] = known.number
            known = self._columns = GrantedByRow(epoch, team, number)
            self._lists = {name: _longer(column, rows, ASSIGNMENT_DEFAULTS[name]) for name, column in self._lists.items()}
        return known

    def column(self, name: str) -> NDArray[Any]:
        """A column of lists or words over all rows."""
        rows = len(self.columns.epoch)  # which makes all columns as long as the tables are
        if name not in self._lists:
            self._lists[name] = _longer(np.zeros(0, dtype=object), rows, ASSIGNMENT_DEFAULTS[name])
        return self._lists[name]

    def knows(self, name: str) -> bool:
        """Whether anything was ever granted under this name."""
        return name in self._asked

    def takes_turns(self, row: int) -> bool:
        """Whether the row, which has a grant, is in a rotation; no grant is made for that."""
        number = self.columns.number
        return bool(number[LINES["turns"], row] >= 0.0 or number[MODE, row] == Mode.TIME)

    def note_lists(self, table: Assignments, places: list[int], rows: list[int]) -> None:
        """Rows have what the plan says at these places, and its numbers are noted: what it was asked for, and lists and words."""
        self._asked.update(name for name in (*NUMBERS, *RAW) if table.has(name))
        for name in LISTS:
            if table.has(name) or name in self._asked:
                self._asked.add(name)
                entries, stored = table.entries(name), self.column(name)
                for place, row in zip(places, rows):
                    stored[row] = entries[place]

    def forget(self, rows: Ints | int) -> None:
        """These rows did not get what they asked for: the next plan is compared with them whatever it gives."""
        self.columns.epoch[rows] = -1


class GrantsOfPlan:
    """The grants of many rows, as one plan gave them."""

    def __init__(
        self,
        holdings: Holdings,
        rows: Ints,
        table: Assignments,
        places: dict[int, int],
        workers: dict[int, tuple[Worker, ...]],
        caps: dict[int, float],
    ) -> None:
        """The plan named these `rows`, and what it gave at these places, by row, is kept: it may write to its arrays again.

        `workers` are those of rows with parts, `caps` are amounts of device memory that differ from the plan's.
        """
        self.holdings, self.workers, self.caps = holdings, workers, caps
        self.rows, self.group, self.table = rows, table.column("group").copy(), table.some(np.array(list(places.values()), dtype=np.int64))
        self._places = dict(zip(places, range(len(places))))
        self._members: dict[int, frozenset[int]] = {}

    def grant(self, row: int) -> Grant:
        """The grant of a row, on what it holds now."""
        item, held = replace(self.table[self._places[row]], job=row), self.holdings.of(row)
        if row in self.caps:
            item = replace(item, memory_cap=self.caps[row])
        if item.group not in self._members:
            members = self.rows[self.group == item.group] if item.group >= 0 else self.rows[:0]
            self._members[item.group] = frozenset(members.tolist())
        return Grant((item,), (self._members[item.group],), held.devices, held.shared, self.workers.get(row, ()), self.holdings.side(held))


def _longer(column: NDArray[Any], rows: int, fill: Any) -> NDArray[Any]:
    longer = np.empty(rows, dtype=column.dtype)
    longer[: len(column)] = column
    if column.dtype == object:
        for at in range(len(column), rows):
            longer[at] = fill
    else:
        longer[len(column) :] = fill
    return longer


# A plan: one entry per assignment, in its order, and one form for everything that assignments can say.

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
        for row, grant in state.tables.granted.items():
            self._note(row, grant)

    def _note(self, row: int, grant: Grant) -> None:
        """A grant that came with the tables is known, and no plan is compared with it."""
        known, members = self.granted.columns, np.array(sorted(grant.members[0]), dtype=np.int64)
        groups = room_for_groups(len(members))
        number_groups(members, np.zeros(len(members), dtype=np.int64), len(members), groups)
        known.team[row] = team_of(groups, 0) if len(members) else 0
        for name, line in LINES.items():
            known.number[line, row] = getattr(grant.assignment, name)

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


def divides_time(rows: Ints, table: Assignments) -> Bools:
    """Which assignments are shares of the time on no device in particular."""
    if not table.has("share"):
        return np.zeros(len(rows), dtype=np.bool_)
    mode = table.column("mode")
    part = (table.column("share") < 1.0) & ((mode == Mode.EXCLUSIVE) | (mode == Mode.SPACE))
    _, which, count = np.unique(rows, return_inverse=True, return_counts=True)
    return np.asarray(part | (count[which] > 1))


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
