"""How many devices of a pool each job gets; `equal-share`, and the base of policies that share out anew.

Growth that does not pay for itself is left out (`worth_it`). AFS (Hwang et al., NSDI 2021) and Elastic-Tiresias (Wu
et al., TPDS 2022) share out anew at every event; on a real cluster each change stops the job for a while. Shrinking
is never declined, since others have been given what it frees.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Plan
from gantline.core.policy import param
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.layouts import LaysOut
from gantline.policies.elastic.pools import RATE_LIMIT, Curves, Pool, plan_of, share_again

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


def worth_it(pool: Pool, grants: Ints, cost: float) -> Ints:
    """The same sizes, but for running jobs whose growth would save them less than `cost` seconds: these stay as they are."""
    if cost <= 0.0 or not len(pool):
        return grants
    curves, held = pool.curves, np.where(pool.of(pool.snapshot.jobs.running), pool.of(pool.snapshot.jobs.held), 0)
    here, there = curves.entry_of(held), curves.entry_of(grants)
    grows = (held > 0) & (grants > held) & (here >= 0)
    if not grows.any():
        return grants
    left = pool.of(pool.snapshot.jobs.remaining)
    saved = left * (1.0 / curves.rate[np.maximum(here, 0)] - 1.0 / curves.rate[np.maximum(there, 0)])
    return np.where(grows & (saved < cost), held, grants)


@dataclass(frozen=True)
class SharesOut(LaysOut):
    """Shares out the devices of each type anew whenever a job comes or goes or the nodes change."""

    resize_cost: float = field(
        default=0.0, metadata=param("seconds that a change of size costs; growth that saves less is left out", low=0.0, unit="seconds")
    )

    rate_limit: float = field(default=0.0, metadata=param(RATE_LIMIT, low=0.0, unit="seconds"))

    @abstractmethod
    def share(self, pool: Pool) -> Ints:
        """How many devices each job of the pool gets."""

    def decide(self, snapshot: Snapshot) -> Plan:
        found = share_again(
            snapshot, snapshot.memory or {}, [], lambda pool: worth_it(pool, self.share(pool), self.resize_cost), self.rate_limit
        )
        return plan_of(snapshot, found.shares, self.devices_of, valid_until=found.until, memory=found.memory)


@dataclass(frozen=True)
class EqualShare(SharesOut):
    """Every job as many devices as every other, as far as sizes allow; the earliest jobs where there are not enough."""

    name: ClassVar[str] = "equal-share"
    paper: ClassVar[str] = "a baseline: max-min sharing of devices"

    def share(self, pool: Pool) -> Ints:
        return equal_sizes(pool.curves, pool.capacity)


def equal_sizes(curves: Curves, capacity: int) -> Ints:
    """Minima in order of arrival, then again and again a step for the job that has least; ties fall to the earlier job."""
    grants, free = np.zeros(len(curves), dtype=np.int64), capacity
    size, entry, ends = curves.size.tolist(), curves.first[:-1].tolist(), curves.first[1:].tolist()
    heap = []
    for job, least in enumerate(curves.least.tolist()):
        if 0 < least <= free:
            grants[job], free = least, free - least
            heap.append((least, job))
    heapify(heap)
    while free > 0 and heap:
        have, job = heappop(heap)
        at = entry[job] + 1
        if at < ends[job] and size[at] - have <= free:
            entry[job], grants[job] = at, size[at]
            free -= size[at] - have
            heappush(heap, (size[at], job))
    return grants
