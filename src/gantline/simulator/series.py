"""Queue and use over time, from the jobs and the intervals of a run: a step function with a row when something changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job
from gantline.core.phases import COMPLETED, Phase
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log, LogSize
from gantline.simulator.run_columns import FUTURE, REJECTED, JobColumns, SeriesColumns, SpanColumns, jobs_of_frame, spans_of_frame

Marks = Sequence[tuple[float, int]]
"""Moments from which on so many devices count."""


def series_of(jobs: pl.DataFrame, spans: pl.DataFrame, gpus: int, joined: Marks, down: Marks) -> pl.DataFrame:
    """`series_columns` from frames, as a frame."""
    return series_frame(series_columns(jobs_of_frame(jobs), spans_of_frame(spans, jobs), gpus, joined, down))


def series_frame(series: SeriesColumns) -> pl.DataFrame:
    """The columns as a frame; what is counted is whole."""
    return pl.DataFrame({name: column if name == "time" else column.astype(np.int64) for name, column in vars(series).items()})


def series_columns(jobs: JobColumns, spans: SpanColumns, gpus: int, joined: Marks, down: Marks) -> SeriesColumns:
    """Jobs that wait and run, the devices they hold and ask for, and those there are: ``gpus`` and what ``joined`` later.

    A device that several jobs hold together counts once.
    """
    came = (jobs.state != REJECTED) & (jobs.state != FUTURE)
    asked = np.append(jobs.gpus, 0)[spans.row]  # nothing is known of a job that is not listed
    ended = ~np.isnan(spans.end)
    goes_on = ((spans.reason != Reason.FINISHED) & (spans.reason != Reason.END))[ended]
    shared = _shared_use(spans)
    used_at, used = shared or (np.empty(0), np.empty(0))
    taken = np.zeros(len(spans)) if shared else spans.gpus
    marks = np.array([time for time, _ in (*joined, *down)])
    parts = (jobs.arrival[came], spans.start, spans.end[ended], used_at, marks)
    none, rest, ones = np.zeros(parts[0].size), np.zeros(used_at.size + marks.size), np.ones(len(spans))
    changes = (
        (none + 1, -ones, goes_on, rest),  # queued
        (none, ones, -ones[ended], rest),  # running
        (none, taken, -taken[ended], used, np.zeros(marks.size)),  # busy
        (jobs.gpus[came], -asked, np.where(goes_on, asked[ended], 0), rest),  # queued GPUs
    )
    times = np.concatenate(parts)
    order = np.argsort(times, kind="stable")
    times = times[order]
    last = np.flatnonzero(np.append(times[1:] != times[:-1], np.ones(min(times.size, 1), dtype=bool)))
    queued, running, busy, queued_gpus = (np.cumsum(np.concatenate(part)[order])[last] for part in changes)
    times = times[last]
    return SeriesColumns(times, queued, running, busy, _at(times, down), _at(times, joined) + gpus, queued_gpus)


def _at(times: Floats, marks: Marks) -> Floats:
    """What a step function of (time, count) says at each moment; nothing before its first mark."""
    known = sorted(marks, key=lambda mark: mark[0])
    counts = np.array([0.0, *(count for _, count in known)])
    return counts[np.searchsorted(np.array([time for time, _ in known]), times, side="right")]


def _shared_use(spans: SpanColumns) -> tuple[Floats, Ints] | None:
    """When the number of devices in use changes, and by how much: a device with several holders is in use from the first to the last.

    None where no device ever has two, so that it changes by the devices of those that start and end."""
    gang = np.repeat(np.arange(len(spans)), np.diff(spans.first))
    order = _by_device(spans, gang)
    gang, device = gang[order], spans.devices[order]
    start, end = spans.start[gang], np.where(np.isnan(spans.end), np.inf, spans.end)[gang]
    if not ((device[1:] == device[:-1]) & (start[1:] < end[:-1])).any():
        return None
    left = np.isfinite(end)
    devices, times = np.concatenate([device, device[left]]), np.concatenate([start, end[left]])
    order = np.lexsort((times, devices))
    devices, times = devices[order], times[order]
    holders = np.cumsum(np.concatenate([np.ones(device.size), -np.ones(int(left.sum()))])[order])
    begins = np.append(True, devices[1:] != devices[:-1])
    before = np.append(0.0, holders[:-1])[begins]  # those of other devices that were never given back
    holders -= before[np.cumsum(begins) - 1]
    last = np.append((devices[1:] != devices[:-1]) | (times[1:] != times[:-1]), True)
    devices, times, used = devices[last], times[last], (holders[last] > 0).astype(np.int64)
    earlier = np.append(0, used[:-1])
    earlier[np.append(True, devices[1:] != devices[:-1])] = 0
    return times, used - earlier


def _by_device(spans: SpanColumns, gang: Ints) -> Ints:
    """The holdings of each device one after the other, in order of their starts."""
    if (spans.start[1:] >= spans.start[:-1]).all():  # as logs are written: small numbers are sorted in one pass
        small = spans.devices.size == 0 or int(spans.devices.max()) < 1 << 16
        return np.argsort(spans.devices.astype(np.uint16) if small else spans.devices, kind="stable")
    return np.lexsort((spans.start[gang], spans.devices))


# --- the same of tables and a log, without frames -----------------------------------------------------------------------


def let_in(tables: Tables) -> Bools:
    """The jobs that have arrived and were not turned away."""
    phase = tables.I[Job.PHASE]
    inside: Bools = (phase != Phase.REJECTED) & (phase != Phase.FUTURE)
    return inside


def lost_gpu_time(tables: Tables, log: Log, held: Floats) -> Floats:
    """GPU time that each job held beyond what it asks for; 0 for one that did not finish, or was given more devices than it asked for."""
    count = int(log.LN[LogSize.INTERVALS])
    widest = np.zeros(tables.I.shape[1], dtype=np.int64)
    np.maximum.at(widest, log.LI[Interval.ROW, :count], log.LI[Interval.COUNT, :count])
    asked = tables.I[Job.GPUS]
    within = (tables.I[Job.PHASE] == COMPLETED) & (widest <= asked)
    return np.where(within, np.maximum(held - asked * tables.F[Job.WORK], 0.0), 0.0)


def queue_steps(tables: Tables, log: Log) -> tuple[Floats, Floats]:
    """Times in order, and how many jobs wait from then on."""
    count = int(log.LN[LogSize.INTERVALS])
    start, end, reason = log.LF[Interval.START, :count], log.LF[Interval.END, :count], log.LI[Interval.REASON, :count]
    arrived = tables.F[Job.ARRIVAL][let_in(tables)]
    back = end[~np.isnan(end) & (reason != Reason.FINISHED) & (reason != Reason.END)]
    times = np.concatenate([arrived, start, back])
    change = np.concatenate([np.ones(len(arrived)), -np.ones(count), np.ones(len(back))])
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(change[order])
