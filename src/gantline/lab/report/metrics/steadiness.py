"""The overload guard (`gantline.lab.report.steady`) on a run."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics.columns import columns_of
from gantline.lab.report.steady import WINDOWS, Steadiness, judge
from gantline.simulator.run_columns import COMPLETED, REJECTED, RunColumns

__all__ = ["Steadiness", "steadiness", "steadiness_of"]


def steadiness(run: RunLike, warmup: float | None = None, windows: int = WINDOWS) -> Steadiness:
    """Look at the time between the first arrival, plus ``warmup`` seconds (by default as many as the run left out), and the last one."""
    return steadiness_of(columns_of(run), warmup, windows)


def steadiness_of(run: RunColumns, warmup: float | None = None, windows: int = WINDOWS) -> Steadiness:
    """The same for a run as arrays."""
    warmup = float(run.summary.get("warmup") or 0.0) if warmup is None else warmup
    jobs, series = run.jobs, run.series
    work = jobs.gpus * jobs.duration
    let_in = jobs.state != REJECTED
    queue, devices = (series.time, series.queued), (series.time, series.total_gpus)
    return judge(jobs.arrival[let_in], work[let_in], queue, devices, warmup, windows, _lost(run, work)[let_in])


def _lost(run: RunColumns, work: Floats) -> Floats:
    """GPU time that a job held beyond what it asks for. Of one that was given more devices than it asked for nothing is known: they may
    have been spare."""
    jobs, spans = run.jobs, run.spans
    widest = np.full(len(jobs) + 1, -1)
    np.maximum.at(widest, spans.row, spans.gpus)
    within = (jobs.state == COMPLETED) & (widest[:-1] >= 0) & (widest[:-1] <= jobs.gpus)
    return np.nan_to_num(np.where(within, np.maximum(jobs.gpu_seconds - work, 0.0), 0.0), nan=0.0)
