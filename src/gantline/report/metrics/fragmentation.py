"""How much of the free capacity is of no use to those who wait.

At a moment let ``f`` be the free GPUs of a node and ``s`` all its GPUs. A waiting job of ``g`` GPUs cannot use the free
GPUs of the node when ``f < min(g, s)``: neither does it fit, nor, being larger than a node, can it take the node whole.
Those GPUs are *stranded* for this job. Fragmentation is the share of the free GPUs that is stranded, averaged over the
waiting jobs; zero when nobody waits or nothing is free. It is the measure of fragmentation gradient descent (FGD,
USENIX ATC 2023), taken over the jobs that really wait instead of over a typical mix.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.jit import kernel
from gantline.report.frames import RunLike, settled
from gantline.report.metrics.steps import time_ratio

ARRIVE, START, END = 0, 1, 2


def fragmentation_series(run: RunLike, node_gpus: list[int]) -> pl.DataFrame:
    """A step function of free, waiting and stranded GPUs and of the fragmentation.

    ``node_gpus`` holds the GPUs of each node; devices are numbered through the cluster, node after node.
    """
    run = settled(run)
    sizes = np.asarray(node_gpus, dtype=np.int64)
    node_of_device = np.repeat(np.arange(sizes.size), sizes)
    jobs = run.jobs.filter(pl.col("state") != "rejected").with_row_index("row")
    held = run.allocations.join(jobs.select("job", "row", "finish", "state"), on="job", maintain_order="left")
    last = held.group_by("job").agg(pl.col("end").max().alias("gone"))
    held = held.join(last, on="job", maintain_order="left").with_columns(
        leaves=(pl.col("end") >= pl.col("gone")) & pl.col("state").is_in(["completed", "failed", "cancelled"])
    )
    count = np.concatenate(([0], np.cumsum(held["devices"].list.len().to_numpy().astype(np.int64))))
    devices = held["devices"].explode().drop_nulls().to_numpy().astype(np.int64)

    moments = np.concatenate([jobs["arrival"].to_numpy(), held["start"].to_numpy(), held["end"].to_numpy()])
    kinds = np.repeat(np.array([ARRIVE, START, END]), [jobs.height, held.height, held.height])
    rows = np.concatenate([np.arange(jobs.height), np.arange(held.height), np.arange(held.height)])
    order = np.argsort(moments, kind="stable")
    largest = max(1, *node_gpus)
    out = np.empty((moments.size, 4))
    written = _sweep(
        moments[order],
        kinds[order],
        rows[order],
        jobs["gpus"].to_numpy().astype(np.int64),
        held["row"].to_numpy().astype(np.int64),
        held["leaves"].to_numpy().astype(np.bool_),
        count,
        devices,
        node_of_device,
        sizes,
        sizes.copy(),
        np.zeros(largest + 1, dtype=np.int64),
        np.zeros((largest + 1, largest + 1), dtype=np.int64),
        np.zeros(node_of_device.size, dtype=np.int64),
        np.zeros(jobs.height, dtype=np.int64),
        out,
    )
    frame = pl.DataFrame(out[:written], schema=["time", "free", "waiting", "stranded"], orient="row")
    useful = (pl.col("free") > 0) & (pl.col("waiting") > 0)
    return frame.with_columns(
        fragmentation=pl.when(useful).then(pl.col("stranded") / pl.col("free")).otherwise(0.0),
        wanted_free=pl.when(pl.col("waiting") > 0).then(pl.col("free")).otherwise(0.0),
    )


def fragmentation(series: pl.DataFrame, start: float, end: float) -> float:
    """Of the GPU time that was free while somebody waited, the share that was stranded; zero if there was none."""
    share = time_ratio(series, "stranded", "wanted_free", start, end)
    return 0.0 if math.isnan(share) else share


@kernel
def _sweep(
    moments: NDArray[np.float64],
    kinds: NDArray[np.int64],
    rows: NDArray[np.int64],
    gang: NDArray[np.int64],
    job_of: NDArray[np.int64],
    leaves: NDArray[np.bool_],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    node_of_device: NDArray[np.int64],
    sizes: NDArray[np.int64],
    free: NDArray[np.int64],
    waiting: NDArray[np.int64],
    nodes: NDArray[np.int64],
    holders: NDArray[np.int64],
    running: NDArray[np.int64],
    out: NDArray[np.float64],
) -> int:
    """Walk through all changes in time order and write a row (time, free, waiting, stranded) after each moment; how many there are.

    Counters: free GPUs of each node, `waiting` by gang size (gangs larger than any node count as a whole node), `nodes` by size and
    free GPUs, `holders` of each device, intervals in which each job is `running`.
    """
    largest, written = waiting.size - 1, 0
    for size in sizes:
        nodes[size, size] += 1
    for i in range(moments.size):
        row = rows[i]
        if kinds[i] == ARRIVE:
            waiting[min(gang[row], largest)] += 1
        else:
            step = 1 if kinds[i] == START else -1
            job = job_of[row]
            was = running[job]
            running[job] += step
            if was == 0 and step == 1:
                waiting[min(gang[job], largest)] -= 1
            elif running[job] == 0 and step == -1 and not leaves[row]:
                waiting[min(gang[job], largest)] += 1
            for d in range(first_device[row], first_device[row + 1]):
                device = devices[d]
                before = holders[device] > 0
                holders[device] += step
                if before != (holders[device] > 0):
                    node = node_of_device[device]
                    nodes[sizes[node], free[node]] -= 1
                    free[node] -= step
                    nodes[sizes[node], free[node]] += 1
        if i + 1 < moments.size and moments[i + 1] == moments[i]:
            continue
        total_free, waiters, stranded = 0, 0, 0.0
        for g in range(1, largest + 1):
            waiters += waiting[g]
        for s in range(1, largest + 1):
            for f in range(1, s + 1):
                if nodes[s, f] > 0:
                    total_free += nodes[s, f] * f
                    for g in range(f + 1, largest + 1):
                        if f < min(g, s):
                            stranded += waiting[g] * nodes[s, f] * f
        out[written, 0] = moments[i]
        out[written, 1] = total_free
        out[written, 2] = waiters
        out[written, 3] = stranded / waiters if waiters > 0 else 0.0
        written += 1
    return written
