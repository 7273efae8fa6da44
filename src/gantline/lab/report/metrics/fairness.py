"""How evenly users and jobs were served: Jain's index over users and finish-time fairness of jobs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl

from gantline.core.areas import mean_present
from gantline.core.arrays import Floats
from gantline.lab.report.metrics.completion import finite
from gantline.simulator.run_columns import REJECTED, JobColumns

RhoDefinition = Literal["share", "contention", "static"]


def jain_index(values: pl.Series | Floats) -> float:
    """One when all values are equal, ``1/n`` when one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    array = finite(values)
    squares = float((array**2).sum())
    if array.size == 0:
        return math.nan
    return float(array.sum()) ** 2 / (array.size * squares) if squares > 0 else 1.0


def received_share(jobs: pl.DataFrame, end: float, by: str) -> pl.DataFrame:
    """GPU time held over GPU time asked for, per user or queue: the mean share of their demand that was served.

    A job asks for its GPUs from its arrival to its finish, or to ``end`` when it did not finish. Rejected jobs ask for
    nothing.
    """
    left = pl.when(pl.col("finish").is_finite()).then(pl.col("finish")).otherwise(end)
    requested = (pl.col("gpus") * (left - pl.col("arrival"))).sum()
    held = pl.col("gpu_seconds").sum()
    share = pl.when(requested > 0).then(held / requested).otherwise(None)
    present = jobs.filter(pl.col("state") != "rejected")
    return present.group_by(by).agg(share.alias("received")).sort(by)


def received_by_user(jobs: JobColumns, end: float) -> Floats:
    """The same as `received_share` per user, from arrays; NaN for one that asked for nothing."""
    present = jobs.take(jobs.state != REJECTED)
    users, codes = np.unique(present.user, return_inverse=True)
    requested = np.bincount(codes, present.gpus * (departures(present, end) - present.arrival), users.size)
    held = np.bincount(codes, present.gpu_seconds, users.size)
    return np.where(requested > 0, held / np.where(requested > 0, requested, 1.0), math.nan)


def finish_time_fairness(
    jobs: JobColumns, everyone: JobColumns, gpus: float, end: float, definition: RhoDefinition = "share", present: Floats | None = None
) -> Floats:
    """Rho: completion time over the completion time of an ideal private share; above one the job lost by sharing.

    ``present`` is what `present_over_life` says, where that is known already.

    The ideal time is ``duration`` times a slowdown of at least one. With ``n`` the mean number of present jobs over the
    job's life, ``g`` its GPUs and ``G`` those of the cluster, the slowdown is, by definition:

    * ``share``: ``g n / G``. The job alone on ``1/n`` of the cluster, slowed in proportion when that is less than it
      asked for (Themis, NSDI 2020, Section 3; as evaluated in Sia, SOSP 2023).
    * ``contention``: ``n / G``, what Shockwave's artifact calls Themis' rho.
    * ``static``: all jobs of the run over ``G``, Shockwave's own (NSDI 2023).
    """
    if gpus <= 0:
        return np.full(len(jobs), math.nan)
    if definition == "static":
        slowdown = np.full(len(jobs), len(everyone) / gpus)
    else:
        present = present_over_life(jobs, everyone, end) if present is None else present
        slowdown = present * (jobs.gpus if definition == "share" else 1.0) / gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = jobs.jct / (jobs.duration * np.maximum(slowdown, 1.0))
    return np.where(jobs.duration > 0, rho, math.nan)


def present_over_life(jobs: JobColumns, everyone: JobColumns, end: float) -> Floats:
    """The mean number of jobs in the system, waiting or running, over the life of each job (itself included)."""
    there = everyone.state != REJECTED
    return mean_present(everyone.arrival[there], departures(everyone, end)[there], jobs.arrival, departures(jobs, end))


def departures(jobs: JobColumns, end: float) -> Floats:
    """When each job left: at its finish, or at the end of the run."""
    return np.where(np.isfinite(jobs.finish), jobs.finish, end)
