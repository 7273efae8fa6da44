"""Step functions of time: a row holds from its time to the time of the next row."""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.core.areas import Steps, integral, mean


def time_mean(series: pl.DataFrame, column: str, start: float, end: float) -> float:
    """The mean of a column over the time from ``start`` to ``end``."""
    return mean(steps_of(series, column), start, end)


def bin_means(series: pl.DataFrame, columns: list[str], start: float, end: float, bins: int) -> pl.DataFrame:
    """Means over ``bins`` equal slices of time, for drawing: a row per slice with the time at which it begins."""
    edges = np.linspace(start, end, bins + 1)
    width = (end - start) / bins
    found = {"time": edges[:-1]}
    for column in columns:
        found[column] = np.diff(integral(*steps_of(series, column), edges)) / width if width > 0 else np.zeros(bins)
    return pl.DataFrame(found)


def steps_of(series: pl.DataFrame, column: str) -> Steps:
    """A column over time; an empty cell is zero."""
    ordered = series.select("time", pl.col(column).cast(pl.Float64).fill_null(0.0).fill_nan(0.0)).sort("time", maintain_order=True)
    return ordered["time"].to_numpy(), ordered[column].to_numpy()
