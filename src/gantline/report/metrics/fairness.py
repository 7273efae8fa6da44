"""Who got less than others: Jain's index over users and finish-time fairness of jobs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl

from gantline.core.areas import mean_present

RhoDefinition = Literal["share", "contention", "static"]


def jain_index(values: pl.Series) -> float:
    """One when all values are equal, ``1/n`` when one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    array = values.cast(pl.Float64).drop_nulls().to_numpy()
    array = array[np.isfinite(array)]
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
    asked = (pl.col("gpus") * (left - pl.col("arrival"))).sum()
    held = pl.col("gpu_seconds").sum()
    share = pl.when(asked > 0).then(held / asked).otherwise(None)
    present = jobs.filter(pl.col("state") != "rejected")
    return present.group_by(by).agg(share.alias("received")).sort(by)


def finish_time_fairness(
    jobs: pl.DataFrame, everyone: pl.DataFrame, gpus: float, end: float, definition: RhoDefinition = "share"
) -> pl.Series:
    """Rho: completion time over the completion time of an ideal private share; above one the job lost by sharing.

    The ideal time is ``duration`` times a slowdown of at least one. With ``n`` the mean number of present jobs over the
    job's life, ``g`` its GPUs and ``G`` those of the cluster, the slowdown is, by definition:

    * ``share``: ``g n / G``. The job alone on ``1/n`` of the cluster, slowed in proportion when that is less than it
      asked for (Themis, NSDI 2020, Section 3; as evaluated in Sia, SOSP 2023).
    * ``contention``: ``n / G``, what Shockwave's artifact calls Themis' rho.
    * ``static``: all jobs of the run over ``G``, Shockwave's own (NSDI 2023).
    """
    duration, gang = jobs["duration"].to_numpy(), jobs["gpus"].to_numpy().astype(np.float64)
    if gpus <= 0:
        return pl.Series("rho", np.full(jobs.height, math.nan))
    if definition == "static":
        slowdown = np.full(jobs.height, everyone.height / gpus)
    else:
        present = present_over_life(jobs, everyone, end)
        slowdown = present * (gang if definition == "share" else 1.0) / gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = jobs["jct"].to_numpy() / (duration * np.maximum(slowdown, 1.0))
    return pl.Series("rho", np.where(duration > 0, rho, math.nan))


def present_over_life(jobs: pl.DataFrame, everyone: pl.DataFrame, end: float) -> np.ndarray:
    """The mean number of jobs in the system, waiting or running, over the life of each job (itself included)."""
    accepted = everyone.filter(pl.col("state") != "rejected")
    arrivals, departures = (frame.to_numpy() for frame in _life(accepted, end))
    born, gone = (frame.to_numpy() for frame in _life(jobs, end))
    return mean_present(arrivals, departures, born, gone)


def _life(jobs: pl.DataFrame, end: float) -> tuple[pl.Series, pl.Series]:
    left = pl.when(pl.col("finish").is_finite()).then(pl.col("finish")).otherwise(end)
    frame = jobs.select("arrival", left.alias("left"))
    return frame["arrival"], frame["left"]
