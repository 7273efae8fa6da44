"""`equal-share`, and the base of policies that share out devices anew: elastic sharing without deadlines or queues."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.constraints import param
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.curves import Curves
from gantline.policies.elastic.hysteresis import worth_it
from gantline.policies.elastic.lays_out import LaysOut
from gantline.policies.elastic.pools import RATE_LIMIT, Pool, plan_of, share_again


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
        return plan_of(snapshot, found.shares, self.seats, valid_until=found.until, memory=found.memory)


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
