"""What each row was last granted, as columns: a plan is compared with it in bulk, to find the rows that keep what they have."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import HOST_RESOURCE_NAMES, Job
from gantline.core.jit import kernel
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignments, Mode
from gantline.engine.state import State

#: what makes a grant more than a gang with an option; the option says the rest, and groups are compared by their members
SCALARS = ("required", "mode", "together", "size", "turns", "fraction", "memory_cap", "offset", "batch", "accumulation", "share", "limit")
RAGGED = ("devices", "nodes", "parts", "within", "purpose")
RAW = (
    "option",
    "gpus",
    "type",
    "span",
    *HOST_RESOURCE_NAMES,
)  # what was asked; compared only where the option is made up (devices, parts)
#: where the numbers of a grant are in `NotedGrants.number`
LINES = {name: line for line, name in enumerate((*SCALARS, *RAW))}
DEFAULTS: Floats = np.array([ASSIGNMENT_DEFAULTS[name] for name in LINES], dtype=np.float64)


class Groups:
    """The groups of one plan: per assignment a number that stands for the rows of its group (0: none)."""

    def __init__(self, rows: Ints, table: Assignments) -> None:
        self.rows = rows
        self.number = table.column("group")
        self.team: Ints = np.zeros(len(rows), dtype=np.int64)
        self.codes = 0  # the codes of groups are below this
        self.inside: Ints = self.team[:0]
        if table.has("group"):
            from gantline.engine.group_numbers import number_groups, room_for_groups, write_teams  # plain gangs are in none

            found = room_for_groups(len(rows))
            self.codes = number_groups(rows, self.number, len(rows), found)
            write_teams(found, self.team)
            self._code = found.code
            self.inside = np.flatnonzero(self._code >= 0)

    def code(self) -> Ints:
        """Per assignment a small number for its group; `codes`: none."""
        return np.where(self._code < 0, self.codes, self._code) if self.codes else np.zeros(len(self.rows), dtype=np.int64)

    def spoil(self, quiet: Bools) -> None:
        """A group of which one member changes changes as a whole."""
        if len(self.inside):
            which = self._code[self.inside]
            changed = np.bincount(which, weights=~quiet[self.inside]) > 0
            quiet[self.inside] &= ~changed[which]


class NotedGrants(NamedTuple):
    """What rows were granted, by row, as kernels take it."""

    epoch: Ints  # the grant that a plan is compared with; below zero: none is known
    noted: Ints  # the grant that the columns describe
    team: Ints  # stands for the rows of its group (0: none)
    number: Floats  # (line, row), see `LINES`


class InForce:
    """Columns of requests that were granted, by row; void from the next grant of the row on."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._ragged: dict[str, NDArray[Any]] = {}
        self._asked: set[str] = set()  # what was ever asked for
        self._has_numbers = False
        none: Ints = np.zeros(0, dtype=np.int64)
        self._columns = NotedGrants(none, none, none, np.zeros((len(LINES), 0)))
        self.shares: tuple[NDArray[Any], ...] | None = None  # the shares of time as they were last given, all of them

    @property
    def columns(self) -> NotedGrants:
        """The columns, as long as the tables are; the numbers once they are in use."""
        known, rows = self._columns, self.state.tables.F.shape[1]
        if len(known.epoch) < rows:
            epoch, noted, team = (_longer(column, rows, fill) for column, fill in zip(known, (-1, -1, 0)))
            known = self._columns = NotedGrants(epoch, noted, team, known.number)
            self._ragged = {name: _longer(column, rows, ASSIGNMENT_DEFAULTS[name]) for name, column in self._ragged.items()}
        if self._has_numbers and known.number.shape[1] < rows:
            number = np.tile(DEFAULTS[:, None], rows)
            number[:, : known.number.shape[1]] = known.number
            known = self._columns = known._replace(number=number)
        return known

    @property
    def with_numbers(self) -> NotedGrants:
        """The columns with those of numbers, which most runs never need."""
        self._has_numbers = True
        return self.columns

    def column(self, name: str) -> NDArray[Any]:
        """A column over all rows, in which something is entered."""
        self._asked.add(name)
        if name == "team":
            return self.columns.team
        if name in LINES:
            return np.asarray(self.with_numbers.number[LINES[name]])
        rows = len(self.columns.epoch)  # which makes all columns as long as the tables are
        if name not in self._ragged:
            self._ragged[name] = _longer(np.zeros(0, dtype=object), rows, ASSIGNMENT_DEFAULTS[name])
        return self._ragged[name]

    def describes(self, rows: Ints) -> bool:
        """Whether the columns say what each of these rows was granted."""
        return _are_noted(self.state.tables.I, self.columns.noted, rows)

    def takes_no_turns(self, row: int) -> bool:
        """Whether the columns say that the row is in no rotation; no grant is made for that."""
        known = self.with_numbers
        told = known.noted[row] == self.state.tables.I[Job.EPOCH, row]
        return bool(told and known.number[LINES["turns"], row] < 0.0 and known.number[LINES["mode"], row] != Mode.TIME)

    def knows(self, name: str) -> bool:
        """Whether anything was ever asked for under this name."""
        return name in self._asked

    def has_any(self, names: Sequence[str], rows: Ints) -> bool:
        """Whether any of these rows was last granted something under one of these names, of those that are no numbers."""
        return any(
            entry != ASSIGNMENT_DEFAULTS[name] for name in names if name in self._asked for entry in self.column(name)[rows].tolist()
        )

    def values(self, name: str, rows: Ints) -> Ints | Floats:
        """The team of these rows, or a number that was asked for them; the default where nothing was ever asked for."""
        columns = self.with_numbers
        return columns.team[rows] if name == "team" else columns.number[LINES[name]][rows]

    def only_devices(self, table: Assignments) -> bool:
        """Whether nothing but exact devices was ever asked for, and neither does this plan."""
        return table.tells_only("devices") and self._asked == {"devices"}

    @property
    def nothing_special(self) -> bool:
        """Whether nothing beyond options was ever asked for."""
        return not self._asked

    @property
    def epoch(self) -> Ints:
        """Per row the grant that is in force; below zero: none is known."""
        return self.columns.epoch

    def same(self, rows: Ints, table: Assignments, groups: Groups) -> Bools:
        """Which assignments ask for just what their rows were granted and still have, the option aside."""
        columns = self.with_numbers
        equal: Bools = columns.epoch[rows] == self.state.tables.I[Job.EPOCH][rows]
        if len(groups.inside) or "team" in self._asked:
            equal &= columns.team[rows] == groups.team
        for name in SCALARS:
            if table.has(name):
                equal &= columns.number[LINES[name]][rows] == table.column(name)
            elif name in self._asked:
                equal &= columns.number[LINES[name]][rows] == DEFAULTS[LINES[name]]
        for name in RAGGED:
            if table.has(name) or name in self._asked:
                stored = self.column(name)[rows].tolist()
                equal &= np.fromiter(map(eq, stored, table.entries(name)), dtype=np.bool_, count=len(rows))
        return equal

    def asked_alike(self, rows: Ints, table: Assignments) -> Bools:
        """Which assignments ask for the same option, size and demands as was granted."""
        number = self.with_numbers.number
        equal: Bools = np.ones(len(rows), dtype=np.bool_)
        for name in RAW:
            if table.has(name) or name in self._asked:
                stored, asked = number[LINES[name]][rows], table.column(name)
                equal &= (stored == asked) | (np.isnan(stored) & np.isnan(asked))
        return equal

    def note(self, rows: Ints, table: Assignments, groups: Groups, at: Ints) -> None:
        """The assignments at these places of the plan are in force."""
        if not len(at):
            return
        columns, rows_at = self.columns, rows[at]
        columns.epoch[rows_at] = columns.noted[rows_at] = self.state.tables.I[Job.EPOCH][rows_at]
        if len(groups.inside) or "team" in self._asked:
            self.column("team")[rows_at] = groups.team[at]
        for name in (*SCALARS, *(RAW if table.has("devices") or table.has("parts") else ())):
            if table.has(name):
                self.column(name)[rows_at] = table.column(name)[at]
            elif name in self._asked:
                self.column(name)[rows_at] = DEFAULTS[LINES[name]]
        for name in RAGGED:
            if table.has(name) or name in self._asked:
                entries, stored = table.entries(name), self.column(name)
                for place, row in zip(at.tolist(), rows_at.tolist()):
                    stored[row] = entries[place]

    def note_asked(self, table: Assignments, rows: list[int], at: Ints) -> None:
        """Rows have what the plan says at these places, and its numbers are noted: what it was asked for, and the devices."""
        self._asked.update(name for name in SCALARS if table.has(name))
        if table.has("group"):
            self._asked.add("team")
        if table.has("devices") or "devices" in self._asked:
            entries, stored = table.entries("devices"), self.column("devices")
            for place, row in zip(at.tolist(), rows):
                stored[row] = entries[place]

    def enter(self, row: int) -> None:
        """The row has just what its columns say."""
        columns = self.columns
        columns.epoch[row] = columns.noted[row] = self.state.tables.I[Job.EPOCH, row]

    def forget(self, rows: Ints | int) -> None:
        """These rows did not get what they asked for: the next plan is compared with them whatever it gives."""
        self.columns.epoch[rows] = -1


@kernel
def _are_noted(I: Ints, noted: Ints, rows: Ints) -> bool:
    same = True
    for k in range(rows.shape[0]):
        same = same and noted[rows[k]] == I[Job.EPOCH, rows[k]]
    return same


def _longer(column: NDArray[Any], rows: int, fill: Any) -> NDArray[Any]:
    longer = np.empty(rows, dtype=column.dtype)
    longer[: len(column)] = column
    if column.dtype == object:
        for at in range(len(column), rows):
            longer[at] = fill
    else:
        longer[len(column) :] = fill
    return longer
