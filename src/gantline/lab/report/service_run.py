"""What a service has done, as a run: its jobs, those in the archive included, and the devices that each held, read from its home.

A job holds its devices from the event that grants them to the next event that changes them. How much work was lost, and how
long a job would have run by itself, is not recorded: these are NaN.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import decode_cluster
from gantline.core.errors import RefusedError
from gantline.core.json_reader import Reader
from gantline.lab.report.frames import ALLOCATIONS, EVENTS, JOBS, SERIES, StoredRun, series_of
from gantline.live.scheduler.archive import Archive

if TYPE_CHECKING:
    from gantline.live.store import SqlStore

_STORE, _ARCHIVE = "gantline.sqlite", "archive"
_HOLDS = ("starting", "running", "resizing", "preempting")
_ENDS = {"succeeded": "completed", "failed": "failed", "timeout": "failed", "cancelled": "cancelled", "rejected": "rejected"}
Past = Iterable[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]


def is_service(home: Path) -> bool:
    """Whether this is the folder of a service."""
    return (home / _STORE).is_file() or ((home / "jobs").is_dir() and (home / "secret").is_file())


def read_service(home: Path) -> StoredRun:
    """The past of the service with this folder; it may be running."""
    from gantline.live.store import SqlStore

    store = SqlStore.open(os.environ.get("GANTLINE_STORE") or home / _STORE, write=False)
    try:
        saved = store.checkpoint()
        if saved is None:
            raise RefusedError("nothing has happened there yet", where=str(home), fix="submit jobs first")
        cluster, setup = decode_cluster(Reader(saved[1]["snapshot"], "checkpoint")), saved[1]["setup"]
        run = run_of(_past(store, Archive(home / _ARCHIVE)), cluster)
        chosen = _in_charge(store.events_of([""]).get("", []))
    finally:
        store.close()
    setting = {key: setup[key] for key in ("policy", "settings", "regime", "round", "placement", "admission", "seed")}
    about = {"name": f"live {setup['policy']}", **setting, **run.summary, **chosen}
    return StoredRun(run.jobs, run.allocations, run.events, run.series, about)


def _in_charge(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which policies decided, one after the other, where one chose among several."""
    changes = [(float(one["time"]), str(one["policy"]), str(one["because"])) for one in events if one["event"] == "in-charge"]
    found = [one for place, one in enumerate(changes) if place == 0 or changes[place - 1][1] != one[1]]
    return {"in_charge": found} if found else {}


def _past(store: SqlStore, archive: Archive) -> Past:
    """Every job once: one that is still in the store is not taken from the archive."""
    records = list(store.jobs())
    ids = [record["id"] for record in records]
    known, events = set(ids), store.events_of(ids)
    yield from (one for one in archive.records() if one[0]["id"] not in known)
    yield from ((record, events.get(record["id"], [])) for record in records)


def run_of(past: Past, cluster: Cluster) -> StoredRun:
    """Frames of jobs as a store holds them, each with its events."""
    device_of = {f"{node.name}:{k}": int(cluster.first_device[n]) + k for n, node in enumerate(cluster.nodes) for k in range(node.gpus)}
    jobs, spans = [], []
    for record, events in past:
        own = _intervals(record, events, cluster, device_of)
        spans += own
        jobs.append(_job(record, own))
    allocations = pl.DataFrame(spans, schema=ALLOCATIONS, orient="row").sort("start", maintain_order=True)
    table = pl.DataFrame(jobs, schema=JOBS, orient="row").sort("arrival", maintain_order=True)
    left = pl.col("state").is_in(["failed", "cancelled"]) & ~pl.col("job").is_in(allocations["job"].to_list())  # never ran: did not wait
    waits = table.with_columns(state=pl.when(left).then(pl.lit("rejected")).otherwise("state"))
    series = series_of(waits, allocations, cluster.gpus, (), ()).select(list(SERIES))
    times = [float(value) for column in (table["finish"], series["time"]) if (value := column.fill_nan(None).max()) is not None]  # type: ignore[arg-type]
    sizes = [node.gpus for node in cluster.nodes]
    about = {"cluster": str(cluster), "gpus": cluster.gpus, "node_gpus": sizes, "end": max(times, default=0.0), "jobs": table.height}
    return StoredRun(table, allocations, _events(table, allocations), series, about)


def _intervals(
    record: Mapping[str, Any], events: Sequence[Mapping[str, Any]], cluster: Cluster, device_of: Mapping[str, int]
) -> list[tuple[Any, ...]]:
    """Intervals in which a job held the same devices; the last one of a job that runs has no end."""
    found, held, since = [], tuple[str, ...](), math.nan

    def close(until: float, reason: str) -> None:
        devices = [device_of[name] for name in held if name in device_of]
        nodes = sorted({int(cluster.device_node[device]) for device in devices})
        kind = cluster.nodes[nodes[0]].type if nodes else ""
        found.append((str(record["id"]), since, until, kind, nodes, devices, len(held), reason))

    for event in events:
        if event.get("event") != "state":
            continue
        state, now = str(event["state"]), float(event["time"])
        devices = tuple(event.get("devices", ())) if state in _HOLDS else ()
        if held and devices != held:
            ends = "finished" if state == "succeeded" else "end" if state in _ENDS else ""
            close(now, ends or str(event.get("reason") or state))
        if devices != held:
            held, since = devices, now
    if held:
        close(math.nan, "end")
    return found


def _job(record: Mapping[str, Any], intervals: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    asked, spec, state = record.get("asked", {}), record["spec"], str(record["state"])
    arrival, first, finish = (math.nan if record.get(key) is None else float(record[key]) for key in ("submitted", "started", "finished"))
    closed = [(end - start, gpus) for _, start, end, _, _, _, gpus, _ in intervals if not math.isnan(end)]
    held = sum(seconds for seconds, _ in closed)
    runs = bool(intervals) and math.isnan(intervals[-1][2])
    starts = 1 + sum(before[2] != after[1] for before, after in pairwise(intervals)) if intervals else 0
    done = state == "succeeded"
    jct = finish - arrival if done else math.nan
    return (
        str(record["id"]), arrival, first, finish if done else math.nan, jct, int(asked.get("gpus", 0)),
        max(0, starts - 1), max(0, starts - 1), jct - held, first - arrival,
        float(record.get("served") or 0.0), held, sum(seconds * gpus for seconds, gpus in closed), math.nan,
        str(record.get("user", "")), str(spec.get("queue", "")), "", math.nan, math.nan, _ENDS.get(state, "running" if runs else "waiting"),
    )  # fmt: skip


def _events(jobs: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    arrived = jobs.select(time="arrival", kind=pl.lit("arrived"), job="job", detail=pl.lit(""))
    started = spans.select(time="start", kind=pl.lit("started"), job="job", detail=pl.col("gpus").cast(pl.String) + " gpus")
    how = pl.when(pl.col("reason") == "finished").then(pl.lit("finished")).otherwise(pl.lit("stopped"))
    ended = spans.select(time="end", kind=how, job="job", detail="reason")
    return pl.concat([arrived, started, ended]).filter(pl.col("time").is_not_nan()).sort("time", maintain_order=True).select(list(EVENTS))
