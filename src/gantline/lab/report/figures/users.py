"""Users in one order, so that each has one colour in all figures of a page."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gantline.lab.report.frames import RunLike


def users_by_time(runs: Sequence[RunLike]) -> list[str]:
    """The users of all runs, the one with the most GPU time first."""
    demand = pl.concat([run.jobs.select("user", "gpu_seconds") for run in runs])
    ranked = demand.group_by("user").agg(pl.col("gpu_seconds").sum()).sort(["gpu_seconds", "user"], descending=[True, False])
    return [str(user) for user in ranked["user"].to_list()]
