"""How much of the free capacity the waiting jobs cannot use.

At a moment let ``f`` be the free GPUs of a node and ``s`` all its GPUs. A waiting job of ``g`` GPUs cannot use the free
GPUs of the node when ``f < min(g, s)``: neither does it fit, nor, being larger than a node, can it take the node whole.
Those GPUs are *stranded* for this job. Fragmentation is the share of the free GPUs that is stranded, averaged over the
waiting jobs; zero when no job waits or nothing is free. It is the measure of fragmentation gradient descent (FGD,
USENIX ATC 2023), taken over the jobs that really wait instead of over a typical mix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics.columns import columns_of
from gantline.simulator.areas import integral
from gantline.simulator.run_columns import CANCELLED, COMPLETED, FAILED, REJECTED, RunColumns

ARRIVE, START, END = 0, 1, 2


def fragmentation_series(run: RunLike, node_gpus: list[int]) -> pl.DataFrame:
    """A step function of free, waiting and stranded GPUs and of the fragmentation.

    ``node_gpus`` holds the GPUs of each node; devices are numbered through the cluster, node after node.
    """
    frame = pl.DataFrame(stranded_steps(columns_of(run), node_gpus), schema=["time", "free", "waiting", "stranded"], orient="row")
    useful = (pl.col("free") > 0) & (pl.col("waiting") > 0)
    return frame.with_columns(
        fragmentation=pl.when(useful).then(pl.col("stranded") / pl.col("free")).otherwise(0.0),
        wanted_free=pl.when(pl.col("waiting") > 0).then(pl.col("free")).otherwise(0.0),
    )


def fragmentation(series: pl.DataFrame, start: float, end: float) -> float:
    """Of the GPU time that was free while jobs waited, the share that was stranded; zero if there was none."""
    return stranded_share(series.select("time", "free", "waiting", "stranded").to_numpy(), start, end)


def stranded_share(steps: Floats, start: float, end: float) -> float:
    """The same from `stranded_steps`."""
    times, moments = steps[:, 0], np.array([start, end])
    wanted = np.where(steps[:, 2] > 0, steps[:, 1], 0.0)
    stranded, free = (float(np.diff(integral(times, values, moments))[0]) for values in (steps[:, 3], wanted))
    return stranded / free if free > 0 else 0.0


def stranded_steps(run: RunColumns, node_gpus: list[int]) -> Floats:
    """Rows of time, and of free GPUs, waiting jobs and stranded GPUs from then on."""
    sizes = np.asarray(node_gpus, dtype=np.int64)
    node_of_device = np.repeat(np.arange(sizes.size), sizes)
    jobs, spans = run.jobs, run.spans
    last = np.full(len(jobs) + 1, -math.inf)
    np.maximum.at(last, spans.row, spans.end)
    left = np.append(np.isin(jobs.state, (COMPLETED, FAILED, CANCELLED)), False)[spans.row]
    here = np.append(jobs.state != REJECTED, False)  # not turned away, and listed
    arrived, held = np.flatnonzero(here), np.flatnonzero(here[spans.row])
    moments = np.concatenate([jobs.arrival[arrived], spans.start[held], spans.end[held]])
    kinds = np.repeat(np.array([ARRIVE, START, END]), [arrived.size, held.size, held.size])
    order = np.argsort(moments, kind="stable")
    largest = max(1, *node_gpus)
    out = np.empty((moments.size, 4))
    changes = FragmentChanges(moments[order], kinds[order], np.concatenate([arrived, held, held])[order])
    intervals = FragmentIntervals(spans.row, left & (spans.end >= last[spans.row]), spans.first, spans.devices)
    counters = FragmentCounters(
        sizes.copy(),
        np.zeros(largest + 1, dtype=np.int64),
        np.zeros(largest + 1, dtype=np.int64),
        np.zeros(node_of_device.size, dtype=np.int64),
        np.zeros(len(jobs), dtype=np.int64),
    )
    written = _sweep(changes, intervals, jobs.gpus.astype(np.int64), node_of_device, sizes, counters, out)
    return out[:written]


class FragmentChanges(NamedTuple):
    """What happens, in time order: when, which kind of change, and of which job or interval."""

    moments: Floats
    kinds: Ints
    rows: Ints


class FragmentIntervals(NamedTuple):
    """Spans in which a job holds devices: whether it leaves at the end, and where its devices begin in the list of all."""

    job_of: Ints
    leaves: Bools
    first_device: Ints
    devices: Ints


class FragmentCounters(NamedTuple):
    """What is counted on the way.

    `free` GPUs of each node, `waiting` jobs by gang size (gangs larger than any node count as a whole node), `broken` nodes, of
    which some GPUs are held, by free GPUs, `holders` of each device, intervals in which each job is `running`.
    """

    free: Ints
    waiting: Ints
    broken: Ints
    holders: Ints
    running: Ints


@kernel
def _sweep(
    changes: FragmentChanges,
    intervals: FragmentIntervals,
    gang: Ints,
    node_of_device: Ints,
    sizes: Ints,
    counters: FragmentCounters,
    out: Floats,
) -> int:
    """Walk through all changes and write a row (time, free, waiting, stranded) after each moment; how many there are."""
    moments, kinds, rows = changes
    job_of, leaves, first_device, devices = intervals
    free, waiting, broken, holders, running = counters
    largest, written, waiters, total_free = waiting.size - 1, 0, 0, sizes.sum()
    for i in range(moments.size):
        row = rows[i]
        came, job = 0, row
        if kinds[i] == ARRIVE:
            came = 1
        else:
            step = 1 if kinds[i] == START else -1
            job = job_of[row]
            was = running[job]
            running[job] += step
            if was == 0 and step == 1:
                came = -1
            elif running[job] == 0 and step == -1 and not leaves[row]:
                came = 1
            for d in range(first_device[row], first_device[row + 1]):
                device = devices[d]
                before = holders[device] > 0
                holders[device] += step
                if before != (holders[device] > 0):
                    node = node_of_device[device]
                    if free[node] < sizes[node]:
                        broken[free[node]] -= 1
                    free[node] -= step
                    total_free -= step
                    if free[node] < sizes[node]:
                        broken[free[node]] += 1
        if gang[job] > 0:  # one of CPUs alone wants none
            waiting[min(gang[job], largest)] += came
            waiters += came
        if i + 1 < moments.size and moments[i + 1] == moments[i]:
            continue
        stranded = 0.0
        if waiters > 0 and total_free > 0:
            larger = 0  # jobs that the free GPUs of such a node are too few for
            for f in range(largest - 1, 0, -1):
                larger += waiting[f + 1]
                stranded += larger * broken[f] * f
        out[written, 0] = moments[i]
        out[written, 1] = total_free
        out[written, 2] = waiters
        out[written, 3] = stranded / waiters if waiters > 0 else 0.0
        written += 1
    return written
