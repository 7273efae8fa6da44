"""The same plan again, while nothing has happened to anybody: then there is nothing to do, and nobody is looked at.

A policy that is asked because a speed has changed, or a round has begun, often says what it said before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.plan import Assignments
from gantline.engine.state import State

#: what a commit goes by, and what it enters; all of it as whole numbers, because NaN is like NaN here
_INTS = np.array([c.PHASE, c.EPOCH, c.OPTION, c.OPTION_FIRST, c.LOCKED, c.REASON])[:, None]
_FLOATS = np.array([c.LAST_START, c.UNTIL, c.LIMIT_END])[:, None]


class Repeats:
    """The last plan that changed nothing, and how everybody stood then."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._told: dict[str, Any] | None = None
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._active: Ints = self._rows
        self._stood: NDArray[Any] = np.zeros(0)

    def note(self, rows: Ints, table: Assignments) -> None:
        """A commit has just found everybody as the plan wants it; copies, because a policy may write to its arrays again."""
        self._told = {name: column if isinstance(column, tuple) else column.copy() for name, column in table.told()}
        self._rows, self._active, self._stood = rows.copy(), self.state.rows.copy(), self._standing()

    def forget(self) -> None:
        """A commit has changed something."""
        self._told = None

    def seen(self, rows: Ints, table: Assignments) -> bool:
        """Whether this is that plan, and everybody stands as then."""
        told = self._told
        if told is None or not (np.array_equal(rows, self._rows) and np.array_equal(self.state.rows, self._active)):
            return False
        now = dict(table.told())
        if now.keys() != told.keys() or not all(_alike(column, told[name]) for name, column in now.items()):
            return False
        return np.array_equal(self._standing(), self._stood)

    def _standing(self) -> NDArray[Any]:
        t, active = self.state.tables, self.state.rows
        return np.concatenate([t.I[_INTS, active], t.F[_FLOATS, active].view(np.int64)])


def _alike(a: Any, b: Any) -> bool:
    """NaN is like nothing here: then the plan is looked at, which is never wrong."""
    return a == b if isinstance(a, tuple) else np.array_equal(a, b)
