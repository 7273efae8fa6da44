"""The same numbers per user or per queue."""

from __future__ import annotations

from typing import Literal

import polars as pl

from gantline.lab.report.metrics.completion import SLOWDOWN_THRESHOLD, bounded_slowdown
from gantline.lab.report.metrics.deadlines import deadline_outcome
from gantline.lab.report.metrics.fairness import received_share


def per_group(jobs: pl.DataFrame, by: Literal["user", "queue", "app"], end: float, threshold: float = SLOWDOWN_THRESHOLD) -> pl.DataFrame:
    """A row per user, queue or app, the largest consumer first."""
    done = (pl.col("state") == "completed") & pl.col("jct").is_finite()
    table = (
        jobs.with_columns(slowdown=bounded_slowdown(jobs, threshold), outcome=deadline_outcome(jobs, end))
        .group_by(by)
        .agg(
            jobs=pl.len(),
            completed=done.sum(),
            gpu_hours=pl.col("gpu_seconds").sum() / 3600.0,
            jct_mean=pl.col("jct").filter(done).mean(),
            jct_p95=pl.col("jct").filter(done).quantile(0.95, "linear"),
            queueing_mean=pl.col("queueing").filter(done).mean(),
            slowdown_mean=pl.col("slowdown").filter(done).mean(),
            preemptions=pl.col("preemptions").sum(),
            work_lost=pl.col("work_lost").sum(),
            deadline_misses=(pl.col("outcome") == "missed").sum(),
        )
    )
    shares = received_share(jobs, end, by)
    return table.join(shares, on=by, how="left").sort(["gpu_hours", by], descending=[True, False])
