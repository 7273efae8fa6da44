"""How much of the cluster worked: busy GPUs over the GPUs that were up."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gantline.core.areas import integral
from gantline.simulator.run_columns import SeriesColumns


def with_utilization(series: pl.DataFrame) -> pl.DataFrame:
    """The series with two more columns: the GPUs that were up, and the share of them that was busy (0 if none was)."""
    up = pl.col("total_gpus").cast(pl.Float64) - pl.col("down_gpus").cast(pl.Float64).fill_null(0.0)
    busy = pl.col("busy_gpus").cast(pl.Float64)
    return series.with_columns(up_gpus=up, utilization=pl.when(up > 0).then(busy / up).otherwise(0.0))


def busy_share(series: SeriesColumns, start: float, end: float) -> float:
    """Busy GPU time over available GPU time between two moments; NaN where no GPU was up."""
    moments = np.array([start, end])
    busy, up = (np.diff(integral(series.time, values, moments))[0] for values in (series.busy_gpus, series.total_gpus - series.down_gpus))
    return float(busy / up) if up > 0 else math.nan
