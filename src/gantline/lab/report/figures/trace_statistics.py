"""What a trace looks like: sizes of jobs, their durations, the hours at which they arrive."""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.completion import distribution_chart
from gantline.lab.report.figures.panels import Axis, Bars, Panel, floats
from gantline.lab.report.metrics.completion import finite

MOST_SIZES = 12


def size_shares(gpus: pl.Series, durations: pl.Series) -> Chart:
    """For each GPU count its share of the jobs and its share of the GPU time."""
    table = (
        pl.DataFrame({"gpus": gpus, "time": gpus * durations}).group_by("gpus").agg(jobs=pl.len(), time=pl.col("time").sum()).sort("gpus")
    )
    notes: tuple[str, ...] = ()
    if table.height > MOST_SIZES:
        frequent = table.top_k(MOST_SIZES, by="jobs").sort("gpus")
        rest = 1.0 - float(frequent["jobs"].sum()) / float(table["jobs"].sum())
        notes = (f"The {MOST_SIZES} most frequent of {table.height} sizes; the others are {rest:.1%} of the jobs.",)
    else:
        frequent = table
    place = np.arange(frequent.height, dtype=np.float64)
    jobs = floats(frequent["jobs"].to_numpy()) / max(1.0, float(table["jobs"].sum()))
    time = floats(frequent["time"].to_numpy()) / max(1e-9, float(table["time"].sum()))
    x = Axis("GPUs of a job", ticks=tuple((float(i), str(size)) for i, size in enumerate(frequent["gpus"].to_list())))
    layers = (Bars("jobs", place, jobs, 0, 0, 2), Bars("GPU time", place, time, 1, 1, 2))
    panel = Panel(x, Axis("share", percent=True, low=0.0), layers, legend="above")
    return Chart("sizes", "Sizes of jobs", (panel,), notes)


def duration_cdf(durations: pl.Series, name: str = "jobs") -> Chart:
    """The distribution of run times with the requested GPUs."""
    return distribution_chart("durations", "Durations of jobs", "duration", "jobs", {name: finite(durations)})


def hours_of_day(arrivals: pl.Series) -> Chart:
    """The share of jobs that arrive in each hour of the day, counted from the origin of the trace's clock."""
    hours = (finite(arrivals) // 3600 % 24).astype(np.int64)
    counts = np.bincount(hours, minlength=24) / max(1, hours.size)
    ticks = tuple((float(hour), str(hour)) for hour in range(0, 24, 3))
    bars = (Bars("arrivals", np.arange(24.0), floats(counts)),)
    panel = Panel(Axis("hour of the day", "h", ticks=ticks), Axis("share of arrivals", percent=True, low=0.0), bars)
    note = "Hours are those of the trace's clock: its time 0 need not be midnight."
    return Chart("hours", "Arrivals by hour of the day", (panel,), (note,))
