"""Voda's eight algorithms by the letter of the original: single precision, ties in the order in which the jobs are listed, no regard for
minima in FfDL and AFS-L, lengths in AFS-L by the champion's workers. `None` stands where the original panics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled
from gantline.policies.elastic.policies import CROWD, in_order, order_by
from gantline.policies.elastic.pools import Pool
from gantline.systems.ffdl.policies import relax

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Ready:
    """Ready jobs as the original lists them."""

    least: Ints
    most: Ints
    asked: Ints
    queue: Ints
    submit: Floats
    first_start: Floats  # infinity: never
    remaining: Singles  # seconds on one worker
    speedup: Singles  # per job and number of workers; zero where nothing is known

    def __len__(self) -> int:
        return len(self.least)


def by_the_letter(pool: Pool, queue: Ints, algorithm: str) -> Ints | None:
    """What the original answers, per job of the pool; None: it panics."""
    listed = order_by(pool.of(pool.snapshot.jobs.listed).astype(np.float64))
    ready = _ready(pool, queue, listed)
    grants = _ALGORITHMS[algorithm](ready, pool.capacity)
    held = grants > 0
    broken = (grants < 0) | (held & (grants < ready.least)) | (grants > ready.most)
    if broken.any() or grants.sum() > pool.capacity:
        return None
    found = np.zeros(len(pool), dtype=np.int64)
    found[listed] = grants
    return found


def _ready(pool: Pool, queue: Ints, listed: Ints) -> Ready:
    jobs, places = pool.snapshot.jobs, pool.jobs[listed]
    columns = {"least": jobs.min_gpus, "most": jobs.max_gpus, "asked": jobs.gpus, "submit": jobs.arrival}
    read = {name: pool.of(column)[listed] for name, column in columns.items()}
    first = pool.of(jobs.first_start)[listed]
    speed = _dense(pool, places, int(read["most"].max(initial=0)) + 2)
    unit = speed[:, 1:2].copy()
    unit[unit == 0.0] = 1.0
    left = pool.of(jobs.remaining)[listed] / unit[:, 0]
    start = np.where(np.isnan(first), np.inf, first)
    return Ready(
        **read, queue=queue[listed], first_start=start, remaining=left.astype(np.float32), speedup=(speed / unit).astype(np.float32)
    )


def _dense(pool: Pool, places: Ints, width: int) -> Floats:
    """Speed by number of workers, from the options as they are listed; one listed size of a range is taken as linear."""
    jobs, options, speed = pool.snapshot.jobs, pool.snapshot.options, np.zeros((len(places), width))
    for place, job in enumerate(places.tolist()):
        own = slice(jobs.option_first[job], jobs.option_first[job] + jobs.option_count[job])
        here = options.type[own] == pool.kind
        size, rate = options.gpus[own][here], options.rate[own][here]
        known = (size > 0) & (size < width)
        if len(size) == 1 and known[0] and jobs.min_gpus[job] < jobs.max_gpus[job]:
            speed[place] = np.arange(width) * (rate[0] / size[0])
        else:
            speed[place, size[known]] = rate[known]
    return speed


# --- the algorithms -----------------------------------------------------------------------------------------------------
def _in_turns(ready: Ready, order: Ints, capacity: int) -> Ints:
    """One device each in turn. (Where the original hands one to a job that was refused its minimum, it panics.)"""
    grants, free = in_order(order, ready.least, capacity)
    while free > 0:
        growing = order[(grants[order] > 0) & (grants[order] < ready.most[order])][:free]
        if not len(growing):
            break
        grants[growing] += 1
        free -= len(growing)
    return grants


def _tiresias(ready: Ready, capacity: int) -> Ints:
    return in_order(np.lexsort((ready.first_start, ready.queue)), ready.asked, capacity)[0]


def _elastic_tiresias(ready: Ready, capacity: int) -> Ints:
    grants = _tiresias(ready, capacity)
    free = capacity - int(grants.sum())
    if int((grants == 0).sum()) > CROWD:
        shrunk = np.where((grants > 0) & (ready.queue >= 1), ready.least, grants)
        free, grants = free + int((grants - shrunk).sum()), shrunk
    speedup, least, queue = ready.speedup, ready.least.tolist(), ready.queue.tolist()

    def gain(job: int) -> Any:
        have = int(grants[job])
        return speedup[job, have + 1] - speedup[job, have] if have else speedup[job, least[job]] / np.float32(least[job])

    heap = [(-gain(job), queue[job], job, job) for job in np.flatnonzero((grants < ready.most) & (ready.least <= free)).tolist()]
    heapify(heap)
    place = 0  # the original sorts one list again and again: the job at its head stays before those that gain as much
    while free > 0 and heap:
        best, _, _, job = heappop(heap)
        if best >= 0:
            break
        step = 1 if grants[job] else least[job]
        if step > free:
            continue
        grants[job] += step
        free -= step
        place -= 1
        if grants[job] < ready.most[job]:
            heappush(heap, (-gain(job), queue[job], place, job))
    return grants


def _ffdl(ready: Ready, capacity: int) -> Ints:
    kept = order_by(ready.submit)[:capacity]
    grants = np.zeros(len(ready), dtype=np.int64)
    if not len(kept):
        return grants if capacity else np.full(len(ready), -1)  # "infeasible" without devices
    choice = np.zeros((len(kept), capacity + 1), dtype=np.int16)
    _fill(ready.speedup, ready.most, kept, capacity, choice)
    left = capacity
    for j in range(len(kept) - 1, -1, -1):
        grants[kept[j]] = choice[j, left]
        left -= int(choice[j, left])
    return grants


@compiled
def _fill(speedup: Singles, most: Ints, kept: Ints, capacity: int, choice: NDArray[np.int16]) -> None:
    before, now = np.zeros(capacity + 1, np.float32), np.empty(capacity + 1, np.float32)
    for j in range(kept.size):
        now[:] = np.float32(-10000.0)
        job = kept[j]
        for size in range(1, min(most[job], capacity) + 1):
            relax(now[size:], before, choice[j, size:], speedup[job, size], np.int16(size))
        before, now = now, before


@compiled
def _quotient(a: np.float32, b: np.float32) -> np.float32:
    """a / b as the processor does it."""
    if b != 0.0:
        return a / b
    if a > 0.0:
        return np.float32(np.inf)
    return np.float32(-np.inf) if a < 0.0 else np.float32(np.nan)


@compiled
def _shares(speedup: Singles, most: Ints, remaining: Singles, order: Ints, capacity: int) -> Ints:
    n, left = most.size, order.size
    grants, alive = np.zeros(n, np.int64), order.copy()
    length, as_later, as_sooner = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
    for job in range(n):
        _weigh(job, speedup, remaining, grants, length, as_later, as_sooner)
    for _ in range(capacity):
        if left == 0:
            break
        best, place = alive[0], 0
        for k in range(1, left):
            job = alive[k]
            workers = grants[best]
            if workers == 0:
                # no length is known with no workers, so the challenger counts as the sooner
                wins = remaining[best] >= remaining[job] if grants[job] == 0 else not as_later[best] > as_sooner[job]
            elif length[best] >= _quotient(remaining[job], speedup[job, workers]):  # the champion's workers for both
                wins = not as_later[best] > as_sooner[job]
            else:
                wins = as_later[job] > as_sooner[best]
            if wins:
                best, place = job, k
        grants[best] += 1
        if grants[best] < most[best]:
            _weigh(best, speedup, remaining, grants, length, as_later, as_sooner)
            continue
        for k in range(place, left - 1):
            alive[k] = alive[k + 1]
        left -= 1
    return grants


@compiled
def _weigh(job: int, speedup: Singles, remaining: Singles, grants: Ints, length: Singles, as_later: Singles, as_sooner: Singles) -> None:
    """Length and relative gains of a job with what it has."""
    here, there = speedup[job, grants[job]], speedup[job, grants[job] + 1]
    length[job] = _quotient(remaining[job], here)
    as_later[job], as_sooner[job] = _quotient(there - here, there), _quotient(there - here, here)


def _by_length(ready: Ready) -> Ints:
    return order_by(ready.remaining.astype(np.float64))


_ALGORITHMS: dict[str, Callable[[Ready, int], Ints]] = {
    "fifo": lambda ready, capacity: in_order(order_by(ready.submit), ready.least, capacity)[0],
    "elastic_fifo": lambda ready, capacity: _in_turns(ready, order_by(ready.submit), capacity),
    "srjf": lambda ready, capacity: in_order(_by_length(ready), ready.least, capacity)[0],
    "elastic_srjf": lambda ready, capacity: _in_turns(ready, _by_length(ready), capacity),
    "tiresias": _tiresias,
    "elastic_tiresias": _elastic_tiresias,
    "ffdl": _ffdl,
    "afs_l": lambda ready, capacity: _shares(ready.speedup, ready.most, ready.remaining, order_by(ready.submit), capacity),
}
