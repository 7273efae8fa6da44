"""A run as arrays, as far as it went: all sums over a run are computed from them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gantline.core.arrays import Floats
from gantline.lab.report.frames import RunLike, StoredRun
from gantline.simulator.run import Run
from gantline.simulator.run_columns import FUTURE, RunColumns


def columns_of(run: RunLike) -> RunColumns:
    """The run as arrays, settled as `frames.settled` does it with frames: jobs that never arrived stand apart, and what was still held
    is held to its end. A simulation gives its arrays without making frames."""
    if not isinstance(run, (Run, StoredRun)):
        run = StoredRun(run.jobs, run.allocations, run.events, run.series, run.summary)
    return run.columns if isinstance(run, StoredRun) and run.is_settled else _settled(run.columns)


def span(run: RunColumns) -> tuple[float, float]:
    """The time from the first arrival to the end that the summary names, or else to the last thing that happened."""
    start = float(finite_only(run.jobs.arrival).min(initial=math.inf))
    start = start if math.isfinite(start) else 0.0
    recorded = run.summary.get("end")
    if isinstance(recorded, (int, float)) and math.isfinite(recorded):
        return start, max(start, float(recorded))
    happened = (run.jobs.arrival, run.jobs.finish, run.spans.end, run.series.time)
    ends = [float(finite_only(column).max(initial=-math.inf)) for column in happened]
    return start, max(start, *(end if math.isfinite(end) else 0.0 for end in ends))


def finite_only(values: Floats) -> Floats:
    """The values that are numbers; nothing is copied where all are."""
    known = np.isfinite(values)
    return values if known.all() else values[known]


def _settled(run: RunColumns) -> RunColumns:
    _, end = span(run)
    came = (run.jobs.arrival <= end) & (run.jobs.state != FUTURE)
    jobs, absent, spans = run.jobs, None, run.spans
    if not came.all():
        row = np.append(np.where(came, np.cumsum(came) - 1, -1), -1)
        jobs, absent, spans = jobs.take(came), jobs.take(~came), replace(spans, row=row[spans.row])
    closed = np.isfinite(spans.end)
    if not closed.all():
        spans = replace(spans, end=np.where(closed, spans.end, end))
    seen = run.series.time <= end
    series = run.series if seen.all() else run.series.take(seen)
    return RunColumns(jobs, spans, series, run.summary, absent)
