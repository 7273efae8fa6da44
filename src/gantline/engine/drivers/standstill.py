"""A guard for every loop: where gangs are started and stopped without end and none of them works, the run is given up.

Changes that cost as long as gangs are left alone (a round, a quantum) have no end: every gang is stopped before it has paid for its start.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
from gantline.engine.lost_turns import Incident

MOVES = 400  # starts and stops between two looks
WHY = "jobs are started and stopped, and none of them does any work: changes take as long as jobs are left alone"


class Standstill:
    """What had been done at the last look."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.state = engine, engine.state
        self._attained: Floats | None = None
        self._next_look = engine.moves + MOVES

    def after_moves(self) -> bool:
        """Whether no gang has worked in many starts and stops; asked after every decision."""
        if self.engine.moves < self._next_look:
            return False
        self._next_look = self.engine.moves + MOVES
        return self.is_here(self.state.now)

    def is_here(self, now: float, attained: Floats | None = None, to_come: bool | None = None) -> bool:
        """Whether no gang has worked since the last look and nothing is to come; then the run's incidents say so.

        By default the tables say what jobs have attained and whether more are to come.
        """
        state = self.state
        if attained is None:
            F, rows = state.tables.F, state.running_rows
            attained = F[Job.SERVICE].copy()
            attained[rows] += np.maximum(0.0, now - F[Job.SINCE][rows])
        if to_come is None:
            to_come = bool(state.lists.number[RowCount.NEXT] < state.tables.count)
        before, self._attained = self._attained, attained
        if to_come or before is None or len(before) != len(attained) or (attained > before).any():
            return False
        self.engine.incidents.append(Incident(now, state.decision, f"{WHY}: given up"))
        return True
