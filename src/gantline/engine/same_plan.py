"""Recognises the last plan again, while no row has changed: then there is nothing to commit, and no row is looked at.

A policy that is asked because a speed has changed, or a round has begun, often returns the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.plan import Assignments
from gantline.core.tables import Matrices
from gantline.engine.lists import Lists, RowCount
from gantline.engine.state import State

#: columns that a commit reads or writes
_INTS = (Job.PHASE, Job.EPOCH, Job.OPTION, Job.OPTION_FIRST, Job.LOCKED, Job.REASON)
_FLOATS = (Job.LAST_START, Job.UNTIL, Job.LIMIT_END)
_INT_COLUMNS, _FLOAT_COLUMNS = np.array(_INTS)[:, None], np.array(_FLOATS)[:, None]


class RowValues(NamedTuple):
    """Rows, and the values of their columns."""

    rows: Ints
    ints: Ints  # (column, row)
    floats: Floats


class Repeats:
    """The last plan that changed nothing, and the rows' columns at that time."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._columns: dict[str, Any] | None = None
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._values = RowValues(self._rows, np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0)))

    def note(self, rows: Ints, table: Assignments) -> None:
        """A commit has just found every row as the plan wants it; copies, because a policy may write to its arrays again.

        A plan about other rows than the one before is not likely to come again, and is not kept.
        """
        if not np.array_equal(rows, self._rows):
            self.forget(rows)
            return
        t, active = self.state.tables, self.state.rows.copy()
        self._columns = {name: column if isinstance(column, tuple) else column.copy() for name, column in _beside_rows(table)}
        self._values = RowValues(active, t.I[_INT_COLUMNS, active], t.F[_FLOAT_COLUMNS, active])

    def forget(self, rows: Ints) -> None:
        """A commit has changed something, or its plan is about others; the rows are kept to see whether the next plan has them too."""
        self._columns, self._rows = None, rows.copy()

    def seen(self, rows: Ints, table: Assignments) -> bool:
        """Whether this is that plan, and no row has changed since."""
        known, lists = self._columns, self.state.lists
        if known is None or not np.array_equal(rows, self._rows) or not _same_values(self.state.matrices, lists, self._values):
            return False
        now = dict(_beside_rows(table))
        return now.keys() == known.keys() and all(_alike(column, known[name]) for name, column in now.items())


@kernel
def _same_values(t: Matrices, lists: Lists, values: RowValues) -> bool:
    """Whether the active rows and their columns are the same; NaN equals NaN here."""
    if lists.number[RowCount.ACTIVE] != values.rows.shape[0]:
        return False
    for at in range(values.rows.shape[0]):
        row = lists.active[at]
        if row != values.rows[at]:
            return False
        for k in range(len(_INTS)):
            if t.I[_INTS[k], row] != values.ints[k, at]:
                return False
        for k in range(len(_FLOATS)):
            now, then = t.F[_FLOATS[k], row], values.floats[k, at]
            if now != then and (now == now or then == then):
                return False
    return True


def _beside_rows(table: Assignments) -> Iterator[tuple[str, Any]]:
    """The columns of a plan except the rows."""
    return ((name, column) for name, column in table.filled_columns() if name != "job")


def _alike(a: Any, b: Any) -> bool:
    """Whether two columns are equal. NaN equals nothing here: then the plan is committed, which is always right."""
    return a == b if isinstance(a, tuple) else np.array_equal(a, b)
