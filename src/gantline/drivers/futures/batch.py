"""Futures of one case in bulk: drawn, run, and collected; large batches on all cores at once, or on a GPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, get_args

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError, UsageError
from gantline.core.jit import beside
from gantline.drivers.futures import places as p
from gantline.drivers.futures.case import room_for
from gantline.drivers.futures.counted import Counted
from gantline.drivers.futures.draws import Draws
from gantline.drivers.futures.heap_loop import run_heap_batch
from gantline.drivers.futures.heap_room import heap_room, takes_heap
from gantline.drivers.futures.loop import run_batch
from gantline.drivers.futures.places import FutureCase

Device = Literal["auto", "cpu", "cuda"]
_LARGE = 300_000  # jobs times futures from which on another thread is worth its while
_HUGE = 10_000_000  # the same for a GPU, which is slow to begin with
_AT_ONCE = 1024  # futures of which jobs are noted at a time where they are not kept
Loops = tuple[Callable[..., None], Callable[..., None]]
_beside: list[Loops] = []  # both loops, once for each thread; none keeps Python from going on


def run_counted(
    case: FutureCase, work: Draws | Floats, coming: Floats | None = None, *, keep_jobs: bool = True, device: Device = "cpu"
) -> Counted:
    """A future for each draw or line of `work`, (future, job); `coming` are its newcomers: (future, what, number), see `places.COMING`.

    Numbers are the same on every device.
    """
    futures, jobs = work.shape
    if coming is None:
        coming = np.zeros((futures, p.COMING, 0))
    if _takes_gpu(device, futures * jobs):
        from gantline.drivers.futures.on_gpu import run_on_gpu  # where Numba's part for GPUs is imported

        return run_on_gpu(case, work, coming, keep_jobs)
    threads = 1 if futures * jobs < _LARGE else _cores()
    while len(_beside) < threads:
        _beside.append((beside(run_batch), beside(run_heap_batch)))

    def run(part: slice, loops: Loops) -> Counted:
        step = part.stop - part.start if keep_jobs else _AT_ONCE
        found = []
        for first in range(part.start, part.stop, step):
            here = slice(first, min(first + step, part.stop))
            found.append(_run(case, work[here], coming[here], loops, keep_jobs))
        return Counted.joined(found)

    parts = [slice(futures * part // threads, futures * (part + 1) // threads) for part in range(threads)]
    if threads == 1:
        return run(parts[0], _beside[0])
    with ThreadPoolExecutor(threads) as pool:
        return Counted.joined([*pool.map(run, parts, _beside)])


def _run(case: FutureCase, work: Draws | Floats, coming: Floats, loops: Loops, keep_jobs: bool) -> Counted:
    lines = work.lines() if isinstance(work, Draws) else work
    start, finish, sums = np.empty(lines.shape), np.empty(lines.shape), np.empty((len(lines), p.SUMS))
    lost, (general, by_heap) = np.zeros(1, dtype=np.int64), loops
    if takes_heap(case, coming.shape[2]):
        by_heap(case, heap_room(case), lines, start, finish, sums, lost)
    else:
        general(case, room_for(case, coming.shape[2]), lines, coming, start, finish, sums, lost)
    return Counted(start if keep_jobs else start[:0], finish if keep_jobs else finish[:0], sums, int(lost[0]))


def check_device(device: str) -> None:
    """Refuse a device that is not known or not here."""
    if device not in get_args(Device):
        raise UsageError(f"no device '{device}'", where="rollout", fix="one of " + ", ".join(get_args(Device)))
    if device == "cuda" and (why := _missing()):
        raise RefusedError(f"no futures on a GPU: {why}", where="device 'cuda'", fix="use device='cpu', or 'auto'")


def _takes_gpu(device: str, size: int) -> bool:
    """Whether a batch of so many jobs, times futures, goes to a GPU."""
    return device == "cuda" or (device == "auto" and size >= _HUGE and not _missing())


def _missing() -> str:
    from gantline.drivers.futures import on_gpu  # where Numba's part for GPUs is imported

    return on_gpu.missing()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
