"""How much of the cluster worked: busy GPUs over the GPUs that were up."""

from __future__ import annotations

import polars as pl

from gantline.report.metrics.steps import time_ratio


def with_utilization(series: pl.DataFrame) -> pl.DataFrame:
    """The series with two more columns: the GPUs that were up, and the share of them that was busy (0 if none was)."""
    up = pl.col("total_gpus").cast(pl.Float64) - pl.col("down_gpus").cast(pl.Float64).fill_null(0.0)
    busy = pl.col("busy_gpus").cast(pl.Float64)
    return series.with_columns(up_gpus=up, utilization=pl.when(up > 0).then(busy / up).otherwise(0.0))


def utilization(series: pl.DataFrame, start: float, end: float) -> float:
    """Busy GPU time over available GPU time between two moments."""
    return time_ratio(with_utilization(series), "busy_gpus", "up_gpus", start, end)
