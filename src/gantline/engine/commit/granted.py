"""What each row was last granted, in the columns of a request: a plan is compared with it in bulk."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import HOST_RESOURCE_NAMES, Job
from gantline.core.jit import kernel
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignments, Mode
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
    noted: Ints  # the grant that the columns describe
    team: Ints  # stands for the rows of its group (0: none)
    number: Floats  # (line, row), see `LINES`


class GrantedColumns:
    """Columns of requests that were granted, by row; void from the next grant of the row on."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._lists: dict[str, NDArray[Any]] = {}
        self._asked: set[str] = set()  # what was ever asked for
        none: Ints = np.zeros(0, dtype=np.int64)
        self._columns = GrantedByRow(none, none, none, np.zeros((len(LINES), 0)))
        self.shares: tuple[NDArray[Any], ...] | None = None  # the shares of time as they were last given, all of them

    @property
    def columns(self) -> GrantedByRow:
        """The columns, as long as the tables are."""
        known, rows = self._columns, self.state.tables.F.shape[1]
        if len(known.epoch) < rows:
            epoch, noted, team = (_longer(column, rows, fill) for column, fill in zip(known, (-1, -1, 0)))
            number = np.tile(DEFAULTS[:, None], rows)
            number[:, : known.number.shape[1]] = known.number
            known = self._columns = GrantedByRow(epoch, noted, team, number)
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

    def describes(self, rows: Ints) -> bool:
        """Whether the columns say what each of these rows was granted."""
        return _are_noted(self.state.tables.I, self.columns.noted, rows)

    def takes_no_turns(self, row: int) -> bool:
        """Whether the columns say that the row is in no rotation; no grant is made for that."""
        known = self.columns
        told = known.noted[row] == self.state.tables.I[Job.EPOCH, row]
        return bool(told and known.number[LINES["turns"], row] < 0.0 and known.number[MODE, row] != Mode.TIME)

    def values(self, name: str, rows: Ints) -> Ints | Floats:
        """The team of these rows, or a number that was asked for them."""
        columns = self.columns
        return columns.team[rows] if name == "team" else columns.number[LINES[name]][rows]

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
