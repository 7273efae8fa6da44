"""How much of the cluster worked: busy GPUs over the GPUs that were up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Ints
from gantline.core.errors import UsageError, near
from gantline.core.reasons import Reason
from gantline.lab.report.frames import RunLike, StoredRun, node_gpus_of, settled, span_of
from gantline.lab.report.metrics.fragmentation import fragmentation, fragmentation_series
from gantline.simulator.areas import integral
from gantline.simulator.run_columns import SeriesColumns, SpanColumns


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


# What the held GPUs cost: GPU-hours, money and energy by device type.


def gpu_hours(allocations: pl.DataFrame) -> pl.DataFrame:
    """GPU-hours held per device type. A GPU that two jobs share is held once, and paid once."""
    return _held_once(allocations).group_by("type").agg((pl.col("seconds").sum() / 3600.0).alias("gpu_hours")).sort("type")


def _held_once(allocations: pl.DataFrame) -> pl.DataFrame:
    """A row per interval and device, with the seconds in which no earlier interval held the device."""
    each = allocations.select("type", "start", "end", "devices").explode("devices").drop_nulls("devices").sort("devices", "start")
    known = pl.col("end").cum_max().shift(1).over("devices").fill_null(float("-inf"))
    return each.with_columns(seconds=(pl.col("end") - pl.max_horizontal("start", known)).clip(lower_bound=0.0))


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


# How often gangs were resized and moved, and how many jobs spanned nodes and racks.


def resizes(spans: SpanColumns, counted: Bools) -> int:
    """Times that a running gang was given another number of devices."""
    return int(((spans.reason == Reason.RESIZED) & counted).sum())


def migrations(spans: SpanColumns, counted: Bools) -> int:
    """Times that a running gang went on with other devices."""
    return int(((spans.reason == Reason.MOVED) & counted).sum())


def cross_node(spans: SpanColumns, counted: Bools) -> float:
    """The part of the jobs that ran which ever spanned more than one node; NaN: none ran."""
    return _share(spans, counted, spans.nodes)


def cross_rack(spans: SpanColumns, counted: Bools, racks: Sequence[int]) -> float:
    """The same for racks, by the rack of each node (none: there is one, or it is unknown); nodes that joined later stand by themselves."""
    if not racks:
        return math.nan
    known = spans.nodes < len(racks)
    return _share(spans, counted, np.where(known, np.asarray(racks)[np.where(known, spans.nodes, 0)], -1 - spans.nodes))


def _share(spans: SpanColumns, counted: Bools, places: Ints) -> float:
    """Of the jobs with intervals that count, those with one in more than one of the places."""
    seated = counted & (np.diff(spans.first_node) > 0)
    wide = np.zeros(len(spans), dtype=bool)
    if seated.any():
        first, last = spans.first_node[:-1][seated], spans.first_node[1:][seated]
        ends = np.column_stack([first, last]).ravel()
        bounded = np.append(places, places[-1:])  # the last gang ends where the list does
        least, most = (across.reduceat(bounded, ends)[::2] for across in (np.minimum, np.maximum))
        wide[seated] = least < most
    ran, spread = (np.zeros(spans.row.max(initial=-1) + 2, dtype=bool) for _ in range(2))
    ran[spans.row[counted]], spread[spans.row[wide]] = True, True
    return float(spread.sum() / ran.sum()) if ran.any() else math.nan


# Use, queue and fragmentation of each device type.

_SCHEMA: dict[str, Any] = {
    "type": pl.String,
    "gpus": pl.Int64,
    "jobs": pl.Int64,
    "gpu_hours": pl.Float64,
    "utilization": pl.Float64,
    "queue_mean": pl.Float64,
    "fragmentation": pl.Float64,
}


def per_type(run: RunLike) -> pl.DataFrame:
    """A row per device type, in the cluster's order: its GPUs, the jobs that ran there, GPU-hours held, the part of its GPUs in use.

    ``queue_mean`` is the mean number of jobs in front of it, that is, which waited and then ran there; ``fragmentation`` is that of its
    nodes for those jobs. Empty for a run without nodes in its summary.
    """
    run = settled(run)
    start, end = span_of(run)
    sizes, kinds = np.array(node_gpus_of(run), dtype=np.int64), node_types_of(run)
    if not len(kinds) or len(kinds) != len(sizes) or end <= start:
        return pl.DataFrame(schema=_SCHEMA)
    waits = _waits(run)
    rows = []
    for kind in dict.fromkeys(kinds):
        own = np.array([name == kind for name in kinds])
        held, gpus = run.allocations.filter(pl.col("type") == kind), int(sizes[own].sum())
        if not gpus:
            continue
        seconds = held.select((pl.col("gpus") * (pl.col("end") - pl.col("start"))).sum()).item()
        queued = waits.filter(pl.col("type") == kind)["waited"].sum()
        steps = fragmentation_series(_only(run, held, own, sizes), sizes[own].tolist())
        rows.append(
            {
                "type": kind,
                "gpus": gpus,
                "jobs": held["job"].n_unique(),
                "gpu_hours": float(seconds) / 3600.0,
                "utilization": float(_held_once(held)["seconds"].sum()) / (gpus * (end - start)),
                "queue_mean": float(queued) / (end - start),
                "fragmentation": fragmentation(steps, start, end),
            }
        )
    return pl.DataFrame(rows, schema=_SCHEMA)


def node_types_of(run: RunLike) -> list[str]:
    """The device type of each node as the summary lists them: ``v100 4, k80 8`` as pairs; empty if it does not."""
    listed = run.summary.get("node_types") or []
    return [str(name) for name, count in listed for _ in range(int(count))]


def _waits(run: StoredRun) -> pl.DataFrame:
    """How long each grant was waited for: since the job's arrival, or since the end of its last grant."""
    spans = run.allocations.select("job", "type", "start", "end").join(run.jobs.select("job", "arrival"), on="job").sort("job", "start")
    before = pl.col("end").shift(1).over("job").fill_null(pl.col("arrival"))
    return spans.select("type", waited=(pl.col("start") - before).clip(0.0))


def _only(run: StoredRun, held: pl.DataFrame, own: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> StoredRun:
    """The run as the nodes of one type see it: their devices numbered anew, the jobs that ran there, elsewhere on no device."""
    mine = np.repeat(own, sizes)
    number = pl.DataFrame({"device": np.flatnonzero(mine).astype(np.int32), "there": np.arange(int(mine.sum()), dtype=np.int32)})
    spans = run.allocations.join(held.select("job").unique(), on="job", how="semi", maintain_order="left").with_row_index("span")
    there = spans.select("span", device="devices").explode("device").join(number, on="device").group_by("span").agg(devices="there")
    spans = spans.drop("devices").join(there, on="span", how="left", maintain_order="left").drop("span")
    spans = spans.with_columns(pl.col("devices").fill_null(pl.lit([], dtype=pl.List(pl.Int32)))).select(run.allocations.columns)
    jobs = run.jobs.join(held.select("job").unique(), on="job", how="semi", maintain_order="left")
    return StoredRun(jobs, spans, run.events, run.series, run.summary, is_settled=True)
