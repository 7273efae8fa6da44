"""From when to when a run is measured: one end for the summary, the metrics and every figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gantline.core.columns import Job
from gantline.core.phases import COMPLETED
from gantline.engine.log import Interval

if TYPE_CHECKING:
    from gantline.engine.drivers.simulation import Simulation


def end_of(simulation: Simulation) -> float:
    """When the last job finished or gave its devices back; while a job is unfinished, when the run was stopped.

    A loop in rounds looks once more at the next boundary: that is when the end was noticed, not the end.
    """
    state = simulation.state
    F, log = state.tables.F, state.log
    known = np.fmax.reduce(F[Job.FINISH], initial=-np.inf), np.fmax.reduce(log.LF[Interval.END, : log.intervals], initial=-np.inf)
    last = float(max(known))
    unfinished = bool((state.tables.I[Job.PHASE] < COMPLETED).any())
    return max(state.now, last) if unfinished or last == -np.inf else last


def stretch_of(simulation: Simulation, end: float) -> tuple[float, float]:
    """The time that the figures of the cluster cover: the whole run, or from the first tracked arrival to the last tracked finish."""
    F, I = simulation.state.tables.F, simulation.state.tables.I
    if not F.shape[1]:
        return 0.0, end
    if simulation.track is None:
        return float(F[Job.ARRIVAL][0]), end
    rows = slice(*simulation.track)
    last = np.fmax.reduce(F[Job.FINISH, rows], initial=-np.inf)
    unfinished = bool((I[Job.PHASE, rows] < COMPLETED).any())
    return float(F[Job.ARRIVAL, rows].min()), end if unfinished or last == -np.inf else float(last)
