"""What a walk changes, kept so that it can be undone: where a placement rule makes a gang wait that the walk has started."""

from __future__ import annotations

import numpy as np

from gantline.core.columns import Job
from gantline.engine.log import Interval
from gantline.engine.state import State


class BeforeWalk:
    """The active rows, the devices, the lists and the open intervals of the log, as they are now."""

    def __init__(self, state: State) -> None:
        t, lists = state.tables, state.lists
        self.state, self.rows = state, state.rows.copy()
        self._columns = t.F[:, self.rows].copy(), t.I[:, self.rows].copy()
        self._places = t.NF.copy(), t.NI.copy(), t.D.copy()
        self._lists = tuple(each.copy() for each in (lists.running, lists.waiting, lists.demand, lists.number))
        self._written = state.log.LN.copy()
        open_ = t.I[Job.INTERVAL, state.running_rows]
        self._open = open_[open_ >= 0]

    def restore(self) -> None:
        """Everything is as it was."""
        t, lists, log = self.state.tables, self.state.lists, self.state.log
        t.F[:, self.rows], t.I[:, self.rows] = self._columns
        for now, then in zip((t.NF, t.NI, t.D, lists.running, lists.waiting, lists.demand, lists.number), (*self._places, *self._lists)):
            now[:] = then
        log.LN[:] = self._written
        log.LF[Interval.END, self._open], log.LI[Interval.REASON, self._open] = np.nan, 0
