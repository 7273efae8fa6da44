"""A run as arrays: what became of its jobs, what each held, and the queue over time. Metrics are sums over these, without a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints, Ints32
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log

STATES = ("future", "waiting", "running", "completed", "failed", "cancelled", "rejected")
"""What a job of a frame may have come to; a column of arrays holds the place in this list, or `OTHER`."""
FUTURE, WAITING, RUNNING, COMPLETED, FAILED, CANCELLED, REJECTED = range(len(STATES))
OTHER = len(STATES)
_OF_PHASE = {phase: STATES.index(phase.name.lower()) for phase in Phase if phase.terminal or phase == Phase.FUTURE}
STATE_OF_PHASE = np.array([_OF_PHASE.get(phase, RUNNING if phase.holds_devices else WAITING) for phase in Phase])


@dataclass(frozen=True)
class _Rows:
    """Arrays of one length."""

    def take(self, rows: Ints | Bools) -> Self:
        """Some of the rows; nothing is copied where that is all of them."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        known = ((item.name, getattr(self, item.name)) for item in fields(self))
        return type(self)(**{name: None if column is None else column[rows] for name, column in known})


@dataclass(frozen=True)
class JobColumns(_Rows):
    """One entry per job; times are NaN where there are none."""

    arrival: Floats
    finish: Floats
    jct: Floats
    gpus: Ints
    preemptions: Ints
    restarts: Ints
    queueing: Floats
    responsiveness: Floats
    gpu_seconds: Floats
    work_lost: Floats
    user: Ints  # a number for each
    duration: Floats
    deadline: Floats
    state: Ints  # place in `STATES`
    met: Bools | None = None  # deadlines, where the run judged them itself

    def __len__(self) -> int:
        return len(self.arrival)


@dataclass(frozen=True)
class SpanColumns:
    """One entry per interval in which a gang held its devices; `end` is NaN while it does."""

    row: Ints  # the job; -1 where the run does not list it
    start: Floats
    end: Floats
    gpus: Ints
    reason: Ints  # a code of `core.reasons`
    first: Ints  # its devices are devices[first[k] : first[k + 1]]
    devices: Ints
    first_node: Ints  # its nodes, one of them perhaps repeatedly
    nodes: Ints

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class SeriesColumns(_Rows):
    """Step functions of time: an entry holds from its time to the time of the next one."""

    time: Floats
    queued: Floats
    running: Floats
    busy_gpus: Floats
    down_gpus: Floats
    total_gpus: Floats
    queued_gpus: Floats


@dataclass(frozen=True)
class RunColumns:
    """All of it."""

    jobs: JobColumns
    spans: SpanColumns
    series: SeriesColumns
    summary: Mapping[str, Any]
    absent: JobColumns | None = None  # jobs that had not arrived when the run ended, where they stand apart


def joined(jobs: JobColumns, more: JobColumns) -> JobColumns:
    """Both, one behind the other."""
    pairs = ((item.name, getattr(jobs, item.name), getattr(more, item.name)) for item in fields(jobs))
    both: dict[str, Any] = {name: None if one is None else np.concatenate([one, other]) for name, one, other in pairs}
    return JobColumns(**both)


def jobs_of_tables(tables: Tables | Any, held: Held) -> JobColumns:
    """What the tables of a finished simulation say of its jobs."""
    F, I = tables.F, tables.I
    arrival, finish, work = F[Job.ARRIVAL], F[Job.FINISH], F[Job.WORK]
    jct = finish - arrival
    met = tables.verdicts.get("met")
    return JobColumns(
        arrival=arrival,
        finish=finish,
        jct=jct,
        gpus=I[Job.GPUS],
        preemptions=I[Job.PREEMPTIONS],
        restarts=I[Job.RESTARTS],
        queueing=jct - held.seconds,
        responsiveness=F[Job.MARK] - arrival,
        gpu_seconds=held.device_seconds,
        work_lost=F[Job.LOST],
        user=I[Job.USER],
        duration=work,
        deadline=F[Job.DEADLINE],
        state=STATE_OF_PHASE[I[Job.PHASE]],
        met=None if met is None else np.asarray(met) == 1.0,
    )


def spans_of_log(log: Log | Any, node_of_device: Ints) -> SpanColumns:
    """The intervals in which jobs held devices, from the log of a simulation."""
    n, (_, devices) = log.intervals, held_devices(log)
    row, count, reason = (log.LI[which, :n].astype(np.int64) for which in (Interval.ROW, Interval.COUNT, Interval.REASON))
    first = np.concatenate(([0], np.cumsum(count)))
    return SpanColumns(
        row, log.LF[Interval.START, :n], log.LF[Interval.END, :n], count, reason, first, devices, first, node_of_device[devices]
    )


# --- what was held and for how long: the one place where GPU-hours, queueing and utilization come from -------------------
# Held is held: while a gang starts, saves, moves or waits for the end of a round as well as while it works. Per job every device that it
# holds counts; for the cluster a device that several jobs share counts once.


class Held(NamedTuple):
    """Per job, over the whole run."""

    seconds: Floats  # with devices (or a node's CPUs, or a share of the time), until it finished
    device_seconds: Floats  # devices times seconds, until they were given back


def held_by_job(log: Log | Any, finish: Floats, close: float) -> Held:
    """Seconds and device-seconds of every job; what is still held is held until `close`."""
    n = log.intervals
    found = Held(np.zeros(len(finish)), np.zeros(len(finish)))
    columns = log.LI[Interval.ROW, :n], log.LI[Interval.COUNT, :n], log.LF[Interval.START, :n], log.LF[Interval.END, :n]
    _add_up(*columns, np.asarray(finish), close, np.full(len(finish), -np.inf), *found)
    return found


@kernel
def _add_up(
    row: Ints32, count: Ints32, start: Floats, end: Floats, finish: Floats, close: float, covered: Floats, seconds: Floats, devices: Floats
) -> None:
    """Intervals of a job are in order; those that overlap (samples that run side by side) count once in its seconds."""
    for k in range(row.shape[0]):
        job, stop = row[k], end[k]
        if np.isnan(stop):
            stop = close
        if stop <= start[k]:
            continue
        devices[job] += count[k] * (stop - start[k])
        since, until = max(start[k], covered[job]), stop
        if until > finish[job]:  # not for one without a finish, which is NaN
            until = finish[job]
        if until > since:
            seconds[job] += until - since
        covered[job] = max(covered[job], stop)


def busy_seconds(log: Log | Any, begin: float, stop: float, close: float) -> float:
    """Device-seconds held between two moments, where no device is shared: a sum over the intervals."""
    n = log.intervals
    start, end = _within(log, begin, stop, close)
    return float((np.maximum(end - start, 0.0) * log.LI[Interval.COUNT, :n]).sum())


def busy_by_device(log: Log | Any, devices: int, begin: float, stop: float, close: float) -> Floats:
    """Seconds between two moments in which each device had a holder; while it has several it is in use once."""
    gang, device = held_devices(log)
    start, end = _within(log, begin, stop, close)
    since, order = once_in_use(device, start[gang], end[gang])
    return np.bincount(device[order], weights=(end[gang] - since)[order], minlength=devices).astype(np.float64)


def held_devices(log: Log | Any) -> tuple[Ints, Ints]:
    """Every device of every interval: the number of the interval, and the device."""
    n = log.intervals
    count, offset = (log.LI[column, :n].astype(np.int64) for column in (Interval.COUNT, Interval.OFFSET))
    gang = np.repeat(np.arange(n), count)
    return gang, log.LD[np.arange(len(gang)) + np.repeat(offset - (np.cumsum(count) - count), count)].astype(np.int64)


def once_in_use(device: Ints, start: Floats, end: Floats) -> tuple[Floats, Ints]:
    """Since when each holding of a device is the only one there, at the latest its end; and all of them device by device."""
    order = np.lexsort((start, device))
    since = start.copy()
    _cut(device, start, end, order, since)
    return since, order


def _within(log: Log | Any, begin: float, stop: float, close: float) -> tuple[Floats, Floats]:
    """Starts and ends of all intervals, as far as they lie between two moments; what is still held is held until `close`."""
    n = log.intervals
    start, end = log.LF[Interval.START, :n], log.LF[Interval.END, :n]
    return np.clip(start, begin, stop), np.clip(np.where(np.isnan(end), close, end), begin, stop)


@kernel
def _cut(device: Ints, start: Floats, end: Floats, order: Ints, since: Floats) -> None:
    """Holdings come in order of their starts on each device."""
    latest, covered = -1, -np.inf
    for at in order:
        if device[at] != latest:
            latest, covered = device[at], -np.inf
        since[at] = min(max(start[at], covered), end[at])
        covered = max(covered, end[at])


# --- queue and use over time: a step function with a row when something changes -------------------------------------------

Marks = Sequence[tuple[float, int]]
"""Moments from which on so many devices count."""


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
