"""Gangs that are not stopped for others yet: those that start, and those that can save and have saved nothing so far.

Stopping them would throw away what they have done, and two gangs that stop each other while they start get nowhere. The time for which a
gang is spared is bounded (`grace`), so that one that never gets up, or never saves, does not keep its devices for ever. What people ask for
(cancel, hold, requeue) is not held up.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Ints
from gantline.core.phases import STARTING
from gantline.engine.executor import Can
from gantline.engine.state import State

LIVE_GRACE = 120.0
"""Seconds, where real programs run."""
LIVE_MIN_RUN = 60.0


class Sparing:
    """Locks gangs before a decision, and unlocks them when they need it no more."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.grace = 0.0  # zero: nobody is spared
        self.can: Callable[[int], frozenset[Can]] = lambda row: frozenset()
        self.rows: set[int] = set()  # locked here

    def lock(self) -> None:
        """Lock whom the next decision must not stop."""
        I, rows = self.state.tables.I, self.state.running_rows
        spared = set(rows[self._needs(rows)].tolist())
        I[c.LOCKED, list(self.rows - spared)] = 0
        fresh = [row for row in spared - self.rows if I[c.LOCKED, row] == 0]
        I[c.LOCKED, fresh] = 1
        self.rows = (self.rows & spared) | set(fresh)

    def next_end(self) -> float:
        """When the first of those that are spared has had its grace."""
        starts = self.state.tables.F[c.LAST_START]
        return min((float(starts[row]) + self.grace for row in self.rows), default=math.inf)

    def _needs(self, rows: Ints) -> Bools:
        F, I = self.state.tables.F, self.state.tables.I
        young = self.state.now < F[c.LAST_START][rows] + self.grace
        starting = I[c.PHASE][rows] == STARTING
        unsaved = young & ~starting & (F[c.SAFE][rows] <= 0.0)
        unsaved[unsaved] = [Can.SAVE in self.can(row) for row in rows[unsaved].tolist()]
        return np.asarray(young & (starting | unsaved))
