"""Rows that wait only because the order is strict: all rows behind the first that does not fit, fitting or not.

The walk ends at that first one and does not look at the others, so their reason is entered here.
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.plan import Misfit
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.state import State


def name_blocked(state: State) -> None:
    """After a walk: those behind the first that waits get this reason, except those that this walk itself has stopped or put off."""
    if state.SI[s.S_MISFIT] != int(Misfit.STOP):
        return
    F, I, rows = state.tables.F, state.tables.I, state.waiting_rows
    ranked = rows[F[c.KEY][rows] < np.inf]
    behind = ranked[np.lexsort((ranked, F[c.KEY][ranked]))][1:]
    stopped = (I[c.REASON][behind] == int(Reason.PREEMPTED)) & (F[c.SINCE][behind] == state.now)
    I[c.REASON, behind[~stopped]] = int(Reason.BLOCKED)
