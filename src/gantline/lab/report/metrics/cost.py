"""What the held GPUs cost: GPU-hours, money and energy by device type."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gantline.core.errors import UsageError, near


def gpu_hours(allocations: pl.DataFrame) -> pl.DataFrame:
    """GPU-hours held per device type. A GPU that two jobs share is held once, and paid once."""
    each = allocations.select("type", "start", "end", "devices").explode("devices").drop_nulls("devices").sort("devices", "start")
    known = pl.col("end").cum_max().shift(1).over("devices").fill_null(float("-inf"))
    fresh = (pl.col("end") - pl.max_horizontal("start", known)).clip(lower_bound=0.0)
    return each.with_columns(fresh=fresh).group_by("type").agg((pl.col("fresh").sum() / 3600.0).alias("gpu_hours")).sort("type")


def money(allocations: pl.DataFrame, prices: Mapping[str, float]) -> float:
    """The bill of the held GPUs, ``prices`` in money per GPU-hour of each type."""
    return _weighted(allocations, prices, "price")


def energy(allocations: pl.DataFrame, watts: Mapping[str, float]) -> float:
    """The energy of the held GPUs in kWh, ``watts`` being the mean draw of one held GPU of each type."""
    return _weighted(allocations, watts, "wattage") / 1000.0


def _weighted(allocations: pl.DataFrame, factors: Mapping[str, float], what: str) -> float:
    total = 0.0
    for kind, hours in gpu_hours(allocations).iter_rows():
        if kind not in factors:
            raise UsageError(f"no {what} is given for the device type '{kind}'", fix=near(kind, factors))
        total += hours * factors[kind]
    return total
