"""The overload guard (`gantline.report.steady`) on the frames of a run."""

from __future__ import annotations

import polars as pl

from gantline.report.frames import RunLike, settled
from gantline.report.metrics.steps import steps_of
from gantline.report.steady import WINDOWS, Steadiness, judge

__all__ = ["Steadiness", "steadiness"]


def steadiness(run: RunLike, warmup: float = 0.0, windows: int = WINDOWS) -> Steadiness:
    """Look at the time between the first arrival (plus ``warmup`` seconds) and the last one."""
    run = settled(run)
    jobs = run.jobs.filter(pl.col("state") != "rejected")
    work = (jobs["gpus"] * jobs["duration"]).to_numpy()
    return judge(jobs["arrival"].to_numpy(), work, steps_of(run.series, "queued"), steps_of(run.series, "total_gpus"), warmup, windows)
