"""What the held GPUs cost: GPU-hours, money and energy by device type."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gantline.core.errors import UsageError, near


def gpu_hours(allocations: pl.DataFrame) -> pl.DataFrame:
    """GPU-hours held per device type. A GPU shared by two jobs counts for both, as both would be billed."""
    hours = (pl.col("end") - pl.col("start")) * pl.col("gpus") / 3600.0
    return allocations.group_by("type").agg(hours.sum().alias("gpu_hours")).sort("type")


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
