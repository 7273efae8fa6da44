"""What each row was last granted, as columns: a plan is compared with it in bulk, to find the rows that keep what they have."""

from __future__ import annotations

from functools import cached_property
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignments, Mode
from gantline.engine.state import State

#: what makes a grant more than a gang with an option; the option says the rest, and groups are compared by their members
SCALARS = ("required", "mode", "together", "size", "fraction", "memory_cap", "offset", "batch", "accumulation", "share", "limit")
RAGGED = ("devices", "nodes", "parts", "within", "purpose")
RAW = (
    "option",
    "gpus",
    "type",
    "span",
    *c.BESIDE_NAMES,
)  # what was asked; compared only where the option is made up (devices, parts)


class Groups:
    """The groups of one plan: per assignment a number that stands for the rows of its group (0: none)."""

    def __init__(self, rows: Ints, table: Assignments) -> None:
        self.rows = rows
        self.number, self._mode = table.column("group"), table.column("mode")
        self.team: Ints = np.zeros(len(rows), dtype=np.int64)
        self.codes = 0  # the codes of groups are below this
        self.inside: Ints = np.flatnonzero(self.number >= 0) if table.has("group") else self.team[:0]
        if len(self.inside):
            self._which = self.number[self.inside]
            if self._which.max() > 4 * len(rows):  # sparse
                _, self._which = np.unique(self._which, return_inverse=True)
            self.codes = int(self._which.max()) + 1
            sums = np.zeros(self.codes, dtype=np.uint64)
            np.add.at(sums, self._which, _scrambled(rows[self.inside]))
            self.team[self.inside] = (sums >> np.uint64(1)).astype(np.int64)[self._which]

    def code(self) -> Ints:
        """Per assignment a small number for its group; `codes`: none."""
        found = np.full(len(self.rows), self.codes)
        if len(self.inside):
            found[self.inside] = self._which
        return found

    @cached_property
    def taking_turns(self) -> frozenset[int]:
        """The numbers of time-shared groups."""
        return frozenset(self.number[(self.number >= 0) & (self._mode == int(Mode.TIME))].tolist())

    def spoil(self, quiet: Bools) -> None:
        """A group of which one member changes changes as a whole."""
        if len(self.inside):
            changed = np.bincount(self._which, weights=~quiet[self.inside]) > 0
            quiet[self.inside] &= ~changed[self._which]


class InForce:
    """Columns of requests that were granted, by row; void from the next grant of the row on."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._columns: dict[str, NDArray[Any]] = {}
        self._defaults: dict[str, NDArray[Any]] = {}
        self._epoch: Ints = np.zeros(0, dtype=np.int64)  # the grant that a plan is compared with
        self._noted: Ints = np.zeros(0, dtype=np.int64)  # the grant that the columns describe
        self.shares: tuple[NDArray[Any], ...] | None = None  # the shares of time as they were last given, all of them

    def _grow(self) -> None:
        rows = self.state.tables.F.shape[1]
        if len(self._epoch) < rows:
            self._epoch, self._noted = _longer(self._epoch, rows, -1), _longer(self._noted, rows, -1)
            self._columns = {name: _longer(column, rows, _default(name)) for name, column in self._columns.items()}

    def column(self, name: str) -> NDArray[Any]:
        """A column over all rows; made when it is first needed."""
        found = self._columns.get(name)
        if found is None:
            rows = self.state.tables.F.shape[1]
            found = self._columns[name] = _longer(np.zeros(0, dtype=_type(name)), rows, _default(name))
        return found

    def describes(self, rows: Ints) -> bool:
        """Whether the columns say what each of these rows was granted."""
        self._grow()
        return bool((self._noted[rows] == self.state.tables.I[c.EPOCH][rows]).all())

    def knows(self, name: str) -> bool:
        """Whether anything was ever asked for under this name."""
        return name in self._columns

    def values(self, name: str, rows: Ints) -> Ints | Floats:
        """A column at these rows; the default where nothing was ever asked for."""
        found = self._columns.get(name)
        return np.full(len(rows), _default(name), dtype=_type(name)) if found is None else found[rows]

    def whole(self, name: str) -> Floats:
        """A column over all rows; of defaults where nothing was ever asked for."""
        found = self._columns.get(name)
        if found is None:
            known = self._defaults.get(name)
            if known is None or len(known) < self.state.tables.F.shape[1]:
                known = self._defaults[name] = _longer(np.zeros(0), self.state.tables.F.shape[1], _default(name))
            return known
        self._grow()
        return self._columns[name]

    def only_devices(self, table: Assignments) -> bool:
        """Whether nothing but exact devices was ever asked for, and neither does this plan."""
        return table.tells_only("devices") and self._columns.keys() == {"devices"}

    @property
    def nothing_special(self) -> bool:
        """Whether nothing beyond options was ever asked for."""
        return not self._columns

    @property
    def epoch(self) -> Ints:
        """Per row the grant that is in force; below zero: none is known."""
        self._grow()
        return self._epoch

    def same(self, rows: Ints, table: Assignments, groups: Groups) -> Bools:
        """Which assignments ask for just what their rows were granted and still have, the option aside."""
        self._grow()
        equal: Bools = self._epoch[rows] == self.state.tables.I[c.EPOCH][rows]
        if len(groups.inside) or "team" in self._columns:
            equal &= self.column("team")[rows] == groups.team
        for name in SCALARS:
            if table.has(name):
                equal &= self.column(name)[rows] == table.column(name)
            elif name in self._columns:
                equal &= self._columns[name][rows] == _default(name)
        for name in RAGGED:
            if table.has(name) or name in self._columns:
                stored = self.column(name)[rows].tolist()
                equal &= np.fromiter(map(eq, stored, table.entries(name)), dtype=np.bool_, count=len(rows))
        return equal

    def asked_alike(self, rows: Ints, table: Assignments) -> Bools:
        """Which assignments ask for the same option, size and demands as was granted."""
        equal: Bools = np.ones(len(rows), dtype=np.bool_)
        for name in RAW:
            if table.has(name) or name in self._columns:
                stored, asked = self.column(name)[rows], table.column(name)
                equal &= (stored == asked) | (np.isnan(stored) & np.isnan(asked))
        return equal

    def note(self, rows: Ints, table: Assignments, groups: Groups, at: Ints) -> None:
        """The assignments at these places of the plan are in force."""
        if not len(at):
            return
        self._grow()
        rows_at = rows[at]
        self._epoch[rows_at] = self._noted[rows_at] = self.state.tables.I[c.EPOCH][rows_at]
        if len(groups.inside) or "team" in self._columns:
            self.column("team")[rows_at] = groups.team[at]
        for name in (*SCALARS, *(RAW if table.has("devices") or table.has("parts") else ())):
            if table.has(name) or name in self._columns:
                self.column(name)[rows_at] = table.column(name)[at]
        for name in RAGGED:
            if table.has(name) or name in self._columns:
                entries, stored = table.entries(name), self.column(name)
                for place, row in zip(at.tolist(), rows_at.tolist()):
                    stored[row] = entries[place]

    def enter(self, row: int) -> None:
        """The row has just what its columns say."""
        self._grow()
        self._epoch[row] = self._noted[row] = self.state.tables.I[c.EPOCH, row]

    def forget(self, rows: Ints | int) -> None:
        """These rows did not get what they asked for: the next plan is compared with them whatever it gives."""
        self._grow()
        self._epoch[rows] = -1


def _scrambled(rows: Ints) -> NDArray[np.uint64]:
    """Numbers whose sum tells sets of rows apart, but for one chance in 10^19 (the finaliser of SplitMix64)."""
    mixed = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _default(name: str) -> Any:
    return 0 if name == "team" else ASSIGNMENT_DEFAULTS.get(name)


def _type(name: str) -> Any:
    if name in RAGGED:
        return object
    return np.int64 if name in ("team", "mode", "size", "batch", "accumulation", "required", "together") else np.float64


def _longer(column: NDArray[Any], rows: int, fill: Any) -> NDArray[Any]:
    longer = np.empty(rows, dtype=column.dtype)
    longer[: len(column)] = column
    if column.dtype == object:
        for at in range(len(column), rows):
            longer[at] = fill
    else:
        longer[len(column) :] = fill
    return longer
