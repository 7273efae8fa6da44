"""What was held and for how long, from the log: the one place where GPU-hours, queueing and utilization come from.

Held is held: while a gang starts, saves, moves or waits for the end of a round as well as while it works. Per job every device that it
holds counts; for the cluster a device that several jobs share counts once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints32
from gantline.core.jit import kernel
from gantline.engine.log import Interval, Log


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
    n = log.intervals
    start, end = _within(log, begin, stop, close)
    count, offset = log.LI[Interval.COUNT, :n].astype(np.int64), log.LI[Interval.OFFSET, :n].astype(np.int64)
    gang = np.repeat(np.arange(n), count)
    device = log.LD[np.arange(len(gang)) + np.repeat(offset - (np.cumsum(count) - count), count)]
    order = np.lexsort((start[gang], device))
    found = np.zeros(devices)
    _in_use(device[order], start[gang][order], end[gang][order], np.full(devices, -np.inf), found)
    return found


def _within(log: Log | Any, begin: float, stop: float, close: float) -> tuple[Floats, Floats]:
    """Starts and ends of all intervals, as far as they lie between two moments; what is still held is held until `close`."""
    n = log.intervals
    start, end = log.LF[Interval.START, :n], log.LF[Interval.END, :n]
    return np.clip(start, begin, stop), np.clip(np.where(np.isnan(end), close, end), begin, stop)


@kernel
def _in_use(device: Ints32, start: Floats, end: Floats, covered: Floats, seconds: Floats) -> None:
    """Holdings come in order of their starts on each device."""
    for k in range(device.shape[0]):
        at = device[k]
        seconds[at] += max(0.0, end[k] - max(start[k], covered[at]))
        covered[at] = max(covered[at], end[k])
