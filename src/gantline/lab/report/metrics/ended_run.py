"""A finished run as an objective sees it (`gantline.core.objective`): how its jobs ended, what it cost and how much energy it drew."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gantline.core.ended import Ended
from gantline.lab.report.frames import RunLike, settled, span_of
from gantline.lab.report.metrics.cost import money
from gantline.lab.report.metrics.steps import time_mean
from gantline.lab.report.metrics.window import WHOLE, tracked_window


def ended_run(run: RunLike) -> Ended:
    """What became of the jobs of a run; those that count are the ones it tracked."""
    run = settled(run)
    window = tracked_window(run.summary)
    counted = run.jobs["job"].is_in(window.select(run.jobs)["job"].implode())
    start, end = span_of(run)
    summary = run.summary
    prices = summary.get("prices")
    if window == WHOLE:
        dollars, kwh = summary.get("cost"), summary.get("kwh")
    else:  # power is metered for whole runs alone
        held = run.allocations.join(run.jobs.filter(counted).select("job"), on="job", how="semi")
        dollars, kwh = money(held, prices) if prices else None, None
    return ended_jobs(run.jobs.with_columns(tracked=counted), end, time_mean(run.series, "total_gpus", start, end), dollars, kwh)


def ended_jobs(jobs: pl.DataFrame, end: float, gpus: float, dollars: float | None = None, kwh: float | None = None) -> Ended:
    """The same from a table of jobs; where it has a column ``tracked``, those count."""
    jobs = jobs.filter(pl.col("state") != "future")
    counted = jobs["tracked"].to_numpy() if "tracked" in jobs.columns else np.ones(jobs.height, dtype=bool)
    lost = jobs["state"].is_in(["failed", "rejected", "cancelled"]).to_numpy()
    arrival = jobs["arrival"].to_numpy()
    return Ended(
        arrival=arrival,
        first_start=arrival + jobs["responsiveness"].to_numpy(),
        finish=jobs["finish"].to_numpy(),
        duration=jobs["duration"].to_numpy(),
        gpus=jobs["gpus"].to_numpy().astype(np.float64),
        end=end,
        devices=gpus,
        deadline=jobs["deadline"].to_numpy(),
        lost=lost,
        counted=counted,
        met=jobs["met"].fill_null(False).to_numpy() if "met" in jobs.columns else None,
        dollars=math.nan if dollars is None else float(dollars),
        kwh=math.nan if kwh is None else float(kwh),
    )
