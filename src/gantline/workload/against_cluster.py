"""What a trace and a cluster say against each other: jobs that could not have run there, and logs that held more than there is."""

from __future__ import annotations

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import near
from gantline.workload.finding import Finding
from gantline.workload.trace import Trace


def contradictions_with(trace: Trace, cluster: Cluster) -> list[Finding]:
    """Types that are missing, jobs that no part of the cluster can hold, and more GPUs held at once than there are."""
    rows = trace.frame.with_row_index("_row")
    return [*_missing_types(rows, cluster), *_too_large(rows, cluster), *_too_much_beside(rows, cluster), *held_too_much(trace, cluster)]


def impossible_times(trace: Trace) -> list[Finding]:
    """Where a log says when jobs really started and ended: those that started before they arrived, or ended before they started."""
    rows, found = trace.frame.with_row_index("_row"), []
    for name, before, what in (("started", "arrival", "started before it arrived"), ("ended", "started", "ended before it started")):
        if {name, before} <= set(rows.columns):
            early = rows.filter(pl.col(name) < pl.col(before))
            if early.height:
                found.append(Finding(name, what, "put the times right, or leave the cell empty", rows=_rows(early)))
    return found


def held_too_much(trace: Trace, cluster: Cluster) -> list[Finding]:
    """Where a log says when jobs started: the instant at which they held most, if that is more than the cluster has."""
    rows = trace.frame
    if "started" not in rows.columns:
        return []
    end = pl.col("started") + pl.col("duration")
    if "ended" in rows.columns:
        end = pl.coalesce("ended", end)
    spans = rows.with_row_index("_row").filter(pl.col("started").is_not_null()).with_columns(_end=end)
    kinds = {"": (spans, cluster.gpus)}
    if "type" in rows.columns:
        kinds |= {name: (spans.filter(_is_type(name)), cluster.gpus_of(name)) for name in cluster.types if len(cluster.types) > 1}
    found = []
    for name, (some, there) in kinds.items():
        at, most = _peak(some)
        if most > there:
            row = int(some.filter(pl.col("started") == at)["_row"][0])
            of = f" of type '{name}'" if name else ""
            what = f"jobs held {most:g} GPUs{of} at second {at:g}, and the cluster has {there}"
            found.append(Finding("started", what, "name the cluster on which the log was taken", rows=(row,)))
    return found


def _peak(spans: pl.DataFrame) -> tuple[float, float]:
    """When most GPUs were held, and how many; what ends at an instant has gone before what starts then."""
    if spans.is_empty():
        return 0.0, 0.0
    steps = pl.concat(
        [
            spans.select(time=pl.col("started").cast(pl.Float64), change=pl.col("gpus").cast(pl.Float64)),
            spans.select(time=pl.col("_end").cast(pl.Float64), change=-pl.col("gpus").cast(pl.Float64)),
        ]
    )
    held = steps.group_by("time").sum().sort("time").with_columns(held=pl.col("change").cum_sum())
    top = held.row(int(held["held"].arg_max() or 0), named=True)
    return float(top["time"]), float(top["held"])


def _missing_types(rows: pl.DataFrame, cluster: Cluster) -> list[Finding]:
    if "type" not in rows.columns:
        return []
    known = [name.lower() for name in cluster.types]
    named = rows.filter((pl.col("type") != "") & ~pl.col("type").str.to_lowercase().is_in(known))
    return [
        Finding("type", f"asks for type '{name}', of which the cluster has no device", near(name, cluster.types), rows=_rows(some))
        for (name,), some in named.group_by("type", maintain_order=True)
    ]


def _too_large(rows: pl.DataFrame, cluster: Cluster) -> list[Finding]:
    most = max((cluster.gpus_of(name) for name in cluster.types), default=0)
    large = rows.filter(pl.col("gpus") > most)
    fix = "use a larger cluster, or drop the job"
    return (
        [Finding("gpus", f"asks for more than the {most} GPUs that the cluster has of a type", fix, rows=_rows(large))]
        if large.height
        else []
    )


def _too_much_beside(rows: pl.DataFrame, cluster: Cluster) -> list[Finding]:
    """CPUs, memory or storage beside each device that no node has."""
    found = []
    for name, unit in (("cpus", "CPUs"), ("memory", "GB"), ("storage", "MB/s of storage")):
        most = max((getattr(node, name) for node in cluster.nodes), default=0.0)
        if name not in rows.columns or most <= 0.0:  # the cluster says nothing of it
            continue
        each = pl.col(name) / pl.max_horizontal(pl.col("gpus"), pl.lit(1))
        wide = rows.filter(each > most)
        if wide.height:
            what = f"needs more {unit} beside each device than the {most:g} that the largest node has"
            found.append(Finding(name, what, "use a cluster with larger nodes, or drop the job", rows=_rows(wide)))
    return found


def _is_type(name: str) -> pl.Expr:
    return pl.col("type").str.to_lowercase() == name.lower()


def _rows(some: pl.DataFrame) -> tuple[int, ...]:
    return tuple(int(row) for row in some["_row"])
