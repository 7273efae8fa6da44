"""The overload guard (`gantline.report.steady`) on the frames of a run."""

from __future__ import annotations

import polars as pl

from gantline.report.frames import RunLike, settled
from gantline.report.metrics.steps import steps_of
from gantline.report.steady import WINDOWS, Steadiness, judge

__all__ = ["Steadiness", "steadiness"]


def steadiness(run: RunLike, warmup: float | None = None, windows: int = WINDOWS) -> Steadiness:
    """Look at the time between the first arrival, plus ``warmup`` seconds (by default as many as the run left out), and the last one."""
    run = settled(run)
    warmup = float(run.summary.get("warmup") or 0.0) if warmup is None else warmup
    widest = run.allocations.group_by("job").agg(widest=pl.col("gpus").max())
    jobs = run.jobs.filter(pl.col("state") != "rejected").with_columns(work=pl.col("gpus") * pl.col("duration"))
    jobs = jobs.join(widest, on="job", how="left", maintain_order="left")
    arrival, work, lost = (column.to_numpy() for column in (jobs["arrival"], jobs["work"], jobs.select(_lost()).to_series()))
    return judge(arrival, work, steps_of(run.series, "queued"), steps_of(run.series, "total_gpus"), warmup, windows, lost)


def _lost() -> pl.Expr:
    """GPU time that a job held beyond what it asks for. Of one that was given more devices than it asked for nothing is known: they may
    have been spare."""
    within = (pl.col("state") == "completed") & (pl.col("widest") <= pl.col("gpus"))
    return pl.when(within).then((pl.col("gpu_seconds") - pl.col("work")).clip(0.0)).otherwise(0.0).fill_nan(0.0).fill_null(0.0)
