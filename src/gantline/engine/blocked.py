"""Rows that wait only because the order is strict: all rows behind the first that does not fit, fitting or not.

The walk ends at that first one and does not look at the others, so their reason is entered here.
"""

from __future__ import annotations

import numpy as np

from gantline.core.columns import Job
from gantline.core.plan import Misfit
from gantline.core.reasons import Reason
from gantline.engine.settings import Switch
from gantline.engine.state import State


def name_blocked(state: State) -> None:
    """After a walk: those behind the first that waits get this reason, except those that this walk itself has stopped or put off."""
    if state.SI[Switch.MISFIT] != int(Misfit.STOP):
        return
    F, I, rows = state.tables.F, state.tables.I, state.waiting_rows
    ranked = rows[F[Job.KEY][rows] < np.inf]
    behind = ranked[np.lexsort((ranked, F[Job.KEY][ranked]))][1:]
    stopped = (I[Job.REASON][behind] == int(Reason.PREEMPTED)) & (F[Job.SINCE][behind] == state.now)
    I[Job.REASON, behind[~stopped]] = int(Reason.BLOCKED)
