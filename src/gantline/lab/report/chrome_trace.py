"""A run as a Chrome trace: nodes are processes, devices are threads, allocations are their slices.

Open the file in ui.perfetto.dev or chrome://tracing. The layout is the Trace Event Format's JSON object form; times are
microseconds from the first arrival.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gantline.lab.report.frames import RunLike, node_gpus_of, settled, span_of
from gantline.lab.whole_files import write_whole

CLUSTER = 0
"""The process of the counters, and of devices whose node is not known; node ``n`` is process ``n + 1``."""


def write_chrome_trace(run: RunLike, out: Path) -> Path:
    """Write the trace, an event a line, without ever holding all of them."""

    def fill(draft: Path) -> None:
        with draft.open("w", encoding="utf-8") as file:
            file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
            separator = ""
            for event in trace_events(run):
                file.write(separator + json.dumps(event, ensure_ascii=False, separators=(",", ":")))
                separator = ",\n"
            file.write("\n]}\n")

    return write_whole(Path(out), fill)


def trace_events(run: RunLike) -> Iterator[dict[str, Any]]:
    """Names of nodes and devices, a complete event per device and allocation, counters of the queue and the busy GPUs."""
    run = settled(run)
    start, _ = span_of(run)
    sizes = node_gpus_of(run)
    process = np.repeat(np.arange(len(sizes)) + 1, sizes)
    yield from _names(run, process, len(sizes))
    users = run.jobs.select("job", "user")
    held = run.allocations.join(users, on="job", how="left", maintain_order="left").sort("start", maintain_order=True)
    for row in held.iter_rows(named=True):
        about = {key: row[key] for key in ("gpus", "type", "reason", "user")}
        for device in row["devices"]:
            yield {
                "name": row["job"],
                "cat": row["user"] or "job",
                "ph": "X",
                "ts": _micro(row["start"] - start),
                "dur": _micro(row["end"] - row["start"]),
                "pid": _process_of(device, process),
                "tid": device,
                "args": about,
            }
    for row in run.series.sort("time").iter_rows(named=True):
        moment = {"ph": "C", "ts": _micro(row["time"] - start), "pid": CLUSTER}
        yield {"name": "jobs", **moment, "args": {"waiting": row["queued"], "running": row["running"]}}
        yield {"name": "GPUs", **moment, "args": {"busy": row["busy_gpus"], "down": row["down_gpus"]}}


def _names(run: RunLike, process: np.ndarray, nodes: int) -> Iterator[dict[str, Any]]:
    yield {"name": "process_name", "ph": "M", "pid": CLUSTER, "args": {"name": "cluster"}}
    for node in range(nodes):
        yield {"name": "process_name", "ph": "M", "pid": node + 1, "args": {"name": f"node {node}"}}
        yield {"name": "process_sort_index", "ph": "M", "pid": node + 1, "args": {"sort_index": node + 1}}
    devices: pl.Series = run.allocations["devices"].explode().drop_nulls().unique().sort()
    for device in devices.to_list():
        place = {"ph": "M", "pid": _process_of(device, process), "tid": device}
        yield {"name": "thread_name", **place, "args": {"name": f"GPU {device}"}}


def _process_of(device: int, process: np.ndarray) -> int:
    return int(process[device]) if device < process.size else CLUSTER


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)
