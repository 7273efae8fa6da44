"""Use, queue and fragmentation of each device type."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gantline.lab.report.frames import RunLike, StoredRun, node_gpus_of, settled, span_of
from gantline.lab.report.metrics.fragmentation import fragmentation, fragmentation_series

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
                "utilization": _busy(held) / (gpus * (end - start)),
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


def _busy(held: pl.DataFrame) -> float:
    """Device-seconds; a device that several jobs hold together counts once."""
    each = held.select("start", "end", device="devices").explode("device").drop_nulls("device").sort("device", "start")
    until = pl.col("end").cum_max().shift(1).over("device").fill_null(-float("inf"))
    return float(each.select((pl.col("end") - pl.max_horizontal(pl.col("start"), until)).clip(0.0).sum()).item() or 0.0)


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
