"""How often gangs were resized and moved, and how many jobs spanned nodes and racks."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def resizes(allocations: pl.DataFrame) -> int:
    """Times that a running gang was given another number of devices."""
    return int((allocations["reason"] == "resized").sum())


def migrations(allocations: pl.DataFrame) -> int:
    """Times that a running gang went on with other devices."""
    return int((allocations["reason"] == "moved").sum())


def cross_node(allocations: pl.DataFrame) -> float:
    """The part of the jobs that ran which ever spanned more than one node; NaN: none ran."""
    return _share(allocations, pl.col("nodes").list.len() > 1)


def cross_rack(allocations: pl.DataFrame, racks: Sequence[int]) -> float:
    """The same for racks, by the rack of each node (none: there is one, or nobody said); nodes that joined later stand by themselves."""
    if not racks:
        return float("nan")
    rack = pl.element().replace_strict(list(range(len(racks))), list(racks), default=-1 - pl.element(), return_dtype=pl.Int64)
    return _share(allocations, pl.col("nodes").list.eval(rack).list.n_unique() > 1)


def _share(allocations: pl.DataFrame, spans: pl.Expr) -> float:
    by_job = allocations.group_by("job").agg(spans.any().alias("spans"))
    return float(by_job["spans"].mean()) if by_job.height else float("nan")  # type: ignore[arg-type]
