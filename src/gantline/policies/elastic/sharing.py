"""How many devices of a pool each job gets: minima in an order, growth in turns, and growth by gain (Elastic-Tiresias)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.policies.elastic.curves import Curves

#: More jobs than this without devices, and demoted ones shrink to their minimum (Elastic-Tiresias' compaction).
CROWD = 10


def in_order(order: Ints, wanted: Ints, capacity: int) -> tuple[Ints, int]:
    """Each in turn gets what it wants whole or nothing, and those behind may overtake; what is left comes back too."""
    grants, free = np.zeros(len(wanted), dtype=np.int64), capacity
    sizes = wanted.tolist()
    for job in order.tolist():
        if 0 < sizes[job] <= free:
            grants[job] = sizes[job]
            free -= sizes[job]
    return grants, free


def grow_in_turns(curves: Curves, order: Ints, grants: Ints, free: int) -> Ints:
    """Jobs that hold devices take, in turns, the step to their next size, until nothing is free or none can grow."""
    grown = grants.copy()
    entry = curves.entry_of(grants).tolist()
    size, ends = curves.size.tolist(), curves.first[1:].tolist()
    waiting = deque(job for job in order.tolist() if grants[job] > 0)
    while free > 0 and waiting:
        job = waiting.popleft()
        there = entry[job] + 1
        if there >= ends[job] or size[there] - size[there - 1] > free:
            continue
        free -= size[there] - size[there - 1]
        entry[job] = there
        grown[job] = size[there]
        waiting.append(job)
    return grown


def compact(curves: Curves, queue: Ints, grants: Ints, free: int) -> tuple[Ints, int]:
    """When many wait, jobs that were demoted give up what exceeds their minimum."""
    if int((grants == 0).sum()) <= CROWD:
        return grants, free
    shrunk = np.where((grants > 0) & (queue >= 1), np.minimum(curves.least, grants), grants)
    return shrunk, free + int((grants - shrunk).sum())


def grow_by_gain(curves: Curves, queue: Sequence[int], grants: Ints, free: int) -> Ints:
    """Steps go to the job that gains most speedup per device, a start counting as the step to the minimum; no step that gains nothing.

    Ties: the lower queue, then the earlier job. A step that does not fit now never will, since what is free only falls.
    """
    grown = grants.copy()
    entry = np.where(grants > 0, curves.at_most(grants), curves.first[:-1] - 1).tolist()
    size, speedup, firsts, ends = curves.size.tolist(), curves.speedup.tolist(), curves.first[:-1].tolist(), curves.first[1:].tolist()

    def step(job: int) -> tuple[float, int, int, int] | None:
        at = entry[job]
        if at + 1 >= ends[job]:
            return None
        before, fast = (size[at], speedup[at]) if at >= firsts[job] else (0, 0.0)
        need = size[at + 1] - before
        gain = (speedup[at + 1] - fast) / need
        return (-gain, queue[job], job, need) if gain > 0.0 else None

    heap = [found for job in range(len(grants)) if (found := step(job)) is not None]
    heapify(heap)
    while free > 0 and heap:
        _, _, job, need = heappop(heap)
        if need > free:
            continue
        free -= need
        entry[job] += 1
        grown[job] = size[entry[job]]
        if (found := step(job)) is not None:
            heappush(heap, found)
    return grown


def order_by(key: Floats) -> Ints:
    """Smaller first; jobs stand in order of arrival, so ties fall to the earlier one."""
    return np.argsort(key, kind="stable").astype(np.int64)
