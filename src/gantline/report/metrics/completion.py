"""How long jobs took: completion time, slowdown, queueing, responsiveness and makespan."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gantline.report.frames import completed, unfinished

SLOWDOWN_THRESHOLD = 10.0
"""Seconds a job counts as at least, so that a one-second job that waited a minute does not rule the mean."""


def distribution(values: pl.Series) -> dict[str, float]:
    """Mean, median, 90th, 95th and 99th percentile and maximum of the finite values; NaN where there is none.

    Percentiles interpolate linearly between order statistics.
    """
    found = finite(values)
    names = ("mean", "median", "p90", "p95", "p99", "max")
    if found.size == 0:
        return dict.fromkeys(names, math.nan)
    quantiles = np.quantile(found, [0.5, 0.9, 0.95, 0.99])
    return dict(zip(names, [float(found.mean()), *map(float, quantiles), float(found.max())]))


def cdf(values: pl.Series) -> pl.DataFrame:
    """The empirical distribution function: for each distinct value the share of values not above it."""
    distinct, counts = np.unique(finite(values), return_counts=True)
    total = max(1, int(counts.sum()))
    return pl.DataFrame({"value": distinct, "share": np.cumsum(counts) / total})


def bounded_slowdown(jobs: pl.DataFrame, threshold: float = SLOWDOWN_THRESHOLD) -> pl.Series:
    """Completion time over run time, the run time at least ``threshold`` seconds and the result at least one.

    The run time is the job's ``duration`` with the GPUs it asked for. Feitelson and Rudolph, JSSPP 1998.
    """
    run_time = pl.max_horizontal(pl.col("duration"), pl.lit(threshold))
    return jobs.select(pl.max_horizontal(pl.col("jct") / run_time, pl.lit(1.0)).alias("slowdown"))["slowdown"]


def makespan(jobs: pl.DataFrame) -> float:
    """The time from the first arrival to the last completion; NaN while jobs are unfinished, for it is not over."""
    if not unfinished(jobs).is_empty():
        return math.nan
    ends = finite(completed(jobs)["finish"])
    if ends.size == 0:
        return math.nan
    return float(ends.max() - finite(jobs["arrival"]).min())


def finite(values: pl.Series) -> np.ndarray:
    """The values that are numbers, as an array of floats."""
    array = values.cast(pl.Float64).drop_nulls().to_numpy()
    return np.asarray(array[np.isfinite(array)], dtype=np.float64)
