"""A run as arrays, as far as it went: all sums over a run are computed from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.lab.report.frames import RunLike, StoredRun
from gantline.simulator.areas import Steps, integral, mean
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


# Step functions of time: a row holds from its time to the time of the next row.


def time_mean(series: pl.DataFrame, column: str, start: float, end: float) -> float:
    """The mean of a column over the time from ``start`` to ``end``."""
    return mean(steps_of(series, column), start, end)


def bin_means(series: pl.DataFrame, columns: list[str], start: float, end: float, bins: int) -> pl.DataFrame:
    """Means over ``bins`` equal slices of time, for drawing: a row per slice with the time at which it begins."""
    edges = np.linspace(start, end, bins + 1)
    width = (end - start) / bins
    found = {"time": edges[:-1]}
    for column in columns:
        found[column] = np.diff(integral(*steps_of(series, column), edges)) / width if width > 0 else np.zeros(bins)
    return pl.DataFrame(found)


def steps_of(series: pl.DataFrame, column: str) -> Steps:
    """A column over time; an empty cell is zero."""
    ordered = series.select("time", pl.col(column).cast(pl.Float64).fill_null(0.0).fill_nan(0.0)).sort("time", maintain_order=True)
    return ordered["time"].to_numpy(), ordered[column].to_numpy()


# Which jobs count: a range of arrivals, after a warm-up.
#
# A run begins with an empty cluster, so its first jobs find it too easy, and its last jobs see no successors. Gavel (OSDI
# 2020) and Blox (EuroSys 2024) therefore measure a range of jobs in the order of arrival while others keep arriving.


@dataclass(frozen=True)
class Window:
    """The jobs ``first <= i < last`` in arrival order that arrive no sooner than ``warmup`` seconds after the first."""

    first: int = 0
    last: int | None = None
    warmup: float = 0.0

    def __post_init__(self) -> None:
        if self.first < 0 or self.warmup < 0:
            raise UsageError("a window begins at job 0 or later and its warm-up is not negative", where="window")
        if self.last is not None and self.last <= self.first:
            raise UsageError(f"the window of jobs {self.first}:{self.last} is empty", where="window", fix="give first < last")

    def select(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """The tracked jobs, in arrival order; ties keep the order of the frame."""
        return jobs[self.rows(jobs["arrival"].to_numpy())]

    def rows(self, arrival: Floats) -> Ints:
        """Where the tracked jobs stand among those that arrive at these times, in arrival order; ties keep their order."""
        order = np.argsort(arrival, kind="stable")
        if not order.size:
            return order
        tracked = order[self.first : self.last]
        if self.warmup > 0:
            tracked = tracked[arrival[tracked] >= arrival[order[0]] + self.warmup]
        if not tracked.size:
            raise UsageError(
                f"the window {self} holds none of the {order.size} jobs",
                where="window",
                fix="track earlier jobs or shorten the warm-up",
            )
        return tracked

    def __str__(self) -> str:
        text = f"{self.first}:{'' if self.last is None else self.last}"
        return f"{text} after {self.warmup:g} s" if self.warmup else text


def tracked_window(summary: Mapping[str, Any]) -> Window:
    """The jobs that a run says it tracked; all of them if it does not."""
    tracked = summary.get("track")
    return Window(int(tracked[0]), int(tracked[1])) if tracked else WHOLE


WHOLE = Window()
