"""How often gangs were resized and moved, and how many jobs spanned nodes."""

from __future__ import annotations

import polars as pl


def resizes(allocations: pl.DataFrame) -> int:
    """Times that a running gang was given another number of devices."""
    return int((allocations["reason"] == "resized").sum())


def migrations(allocations: pl.DataFrame) -> int:
    """Times that a running gang went on with other devices."""
    return int((allocations["reason"] == "moved").sum())


def cross_node(allocations: pl.DataFrame) -> float:
    """The part of the jobs that ran which ever spanned more than one node; NaN: none ran."""
    by_job = allocations.group_by("job").agg((pl.col("nodes").list.len() > 1).any().alias("spans"))
    return float(by_job["spans"].mean()) if by_job.height else float("nan")  # type: ignore[arg-type]
