"""What a trace and a cluster say against each other: jobs that could not have run there, and logs that held more than there is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import near
from gantline.traces.faults import Finding
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

_BESIDE = {"cpus": "CPUs", "memory": "GB", "storage": "MB/s of storage"}


def contradictions_with(trace: Trace, cluster: Cluster) -> list[Finding]:
    """Types that are missing, jobs that no part of the cluster can hold, and more GPUs held at once than there are."""
    rows = trace.frame.with_row_index("_row")
    found = [*_missing_types(rows, cluster), *_too_large(rows, cluster), *_too_much_beside(rows, cluster)]
    named = {row for finding in found for row in finding.rows}
    return [*found, *_too_few_together(rows.filter(~pl.col("_row").is_in(named)), cluster), *held_too_much(trace, cluster)]


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
    """Types asked for that the cluster has no device of; of alternatives one type that is there is enough."""
    known, found = [name.lower() for name in cluster.types], []
    if "type" in rows.columns:
        named = rows.filter((pl.col("type") != "") & ~pl.col("type").str.to_lowercase().is_in(known))
        found += [("type", str(name), some) for (name,), some in named.group_by("type", maintain_order=True)]
    cells = rows["options"].unique(maintain_order=True).to_list() if "options" in rows.columns else []
    for cell in filter(None, cells):
        types = [option.type for option in parse_options(cell)]
        if not any(name.lower() in known for name in types):
            found.append(("options", types[0], rows.filter(pl.col("options") == cell)))
    what = "asks for type '{}', of which the cluster has no device"
    return [Finding(field, what.format(name), near(name, cluster.types), rows=_rows(some)) for field, name, some in found]


def _too_large(rows: pl.DataFrame, cluster: Cluster) -> list[Finding]:
    """More GPUs than there are of the type asked for, or of any where none is."""
    found = []
    for of, some, types in _by_type(rows, cluster):
        most = max(cluster.gpus_of(name) for name in types)
        large = some.filter(pl.col("gpus") > most)
        if large.height:
            what = f"asks for more than the {most} GPUs that the cluster has {of}"
            found.append(Finding("gpus", what, "use a larger cluster, or drop the job", rows=_rows(large)))
    return found


def _too_much_beside(rows: pl.DataFrame, cluster: Cluster) -> list[Finding]:
    """CPUs, memory or storage beside each device that no node has."""
    found = []
    for name, unit in _BESIDE.items():
        if name not in rows.columns:
            continue
        for of, some, types in _by_type(rows, cluster):
            amounts = [getattr(node, name) for node in cluster.nodes if node.type in types]
            most = max(amounts) if min(amounts) > 0.0 else math.inf  # a node that says nothing of it may have any amount
            each = pl.col(name) / pl.max_horizontal(pl.col("gpus"), pl.lit(1))
            wide = some.filter(each > most)
            if wide.height:
                largest = "the largest node" if len(types) == len(cluster.types) else f"the largest node {of}"
                what = f"needs more {unit} beside each device than the {most:g} that {largest} has"
                found.append(Finding(name, what, "use a cluster with larger nodes, or drop the job", rows=_rows(wide)))
    return found


def _too_few_together(rows: pl.DataFrame, cluster: Cluster) -> list[Finding]:
    """What is asked for beside each device fits on some node, but all nodes of a type together hold fewer such devices."""
    found = []
    amounts = [name for name in _BESIDE if name in rows.columns]
    for of, some, types in _by_type(rows, cluster) if amounts else ():
        wide = some.filter(pl.all_horizontal(_room(cluster, name, amounts) < pl.col("gpus") for name in types))
        if wide.height:
            what = f"needs so much beside each device that all nodes {of} together hold fewer of them than it asks for"
            found.append(Finding(amounts[0], what, "use a cluster with larger nodes, or drop the job", rows=_rows(wide)))
    return found


def _room(cluster: Cluster, kind: str, amounts: Sequence[str]) -> pl.Expr:
    """How many devices of a type a job can have, with what it asks for beside each; a node that says nothing of it may have any amount."""
    shapes = Counter((node.gpus, *(getattr(node, name) for name in amounts)) for node in cluster.nodes if node.type == kind)
    held = []
    for (gpus, *has), count in shapes.items():
        each = [(pl.col(name) / pl.max_horizontal(pl.col("gpus"), pl.lit(1)), amount) for name, amount in zip(amounts, has) if amount > 0]
        held.append(count * pl.min_horizontal(pl.lit(float(gpus)), *((amount / need + 1e-9).floor() for need, amount in each)))
    return pl.sum_horizontal(held)


def _by_type(rows: pl.DataFrame, cluster: Cluster) -> Iterator[tuple[str, pl.DataFrame, tuple[str, ...]]]:
    """The jobs by the types that they may have: of each type those that ask for it, and those that ask for none."""
    free = pl.col("type") == "" if "type" in rows.columns else pl.lit(1) == 1
    if "options" in rows.columns:
        free, rows = free, rows.filter(pl.col("options") == "")  # each alternative says what it needs
    yield "of a type", rows.filter(free), cluster.types  # whichever has most
    for name in cluster.types if "type" in rows.columns else ():
        yield f"of type '{name}'", rows.filter(_is_type(name)), (name,)


def _is_type(name: str) -> pl.Expr:
    return pl.col("type").str.to_lowercase() == name.lower()


def _rows(some: pl.DataFrame) -> tuple[int, ...]:
    return tuple(int(row) for row in some["_row"])
