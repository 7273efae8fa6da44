"""Futures of one case in bulk: drawn, run, and collected; large batches on several cores at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import beside
from gantline.drivers.futures import places as p
from gantline.drivers.futures.case import room_for
from gantline.drivers.futures.loop import run_batch
from gantline.drivers.futures.places import FutureCase

_LARGE = 300_000  # jobs times futures from which on another thread is worth its while
_beside: list[Callable[..., None]] = []  # the loop, once for each thread; none keeps Python from going on


@dataclass(frozen=True)
class Counted:
    """What became of the jobs in each future: (future, job), and sums over each (`places.SUM_FINISH` ...); `lost` futures went nowhere."""

    start: Floats
    finish: Floats
    sums: Floats
    lost: int


def run_counted(case: FutureCase, work: Floats, coming: Floats | None = None) -> Counted:
    """A future for each line of `work`, (future, job); `coming` are its newcomers: (future, what, number), see `places.COMING`."""
    futures, jobs = work.shape
    if coming is None:
        coming = np.zeros((futures, p.COMING, 0))
    start, finish, sums = np.empty((futures, jobs)), np.empty((futures, jobs)), np.empty((futures, p.SUMS))
    threads = 1 if futures * jobs < _LARGE else _cores()
    while len(_beside) < threads:
        _beside.append(beside(run_batch))

    def run(part: slice, loop: Callable[..., None]) -> int:
        room, lost = room_for(case, coming.shape[2]), np.zeros(1, dtype=np.int64)
        loop(case, room, work[part], coming[part], start[part], finish[part], sums[part], lost)
        return int(lost[0])

    if threads == 1:
        return Counted(start, finish, sums, run(slice(None), _beside[0]))
    with ThreadPoolExecutor(threads) as pool:
        return Counted(start, finish, sums, sum(pool.map(run, _parts(futures, threads), _beside)))


def _parts(futures: int, parts: int) -> Iterator[slice]:
    for part in range(parts):
        yield slice(futures * part // parts, futures * (part + 1) // parts)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
