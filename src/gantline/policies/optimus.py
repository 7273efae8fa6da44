"""Optimus (Peng et al., EuroSys 2018): devices one by one to the job whose remaining time falls most by one more."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import Pool, plan_of, pools


@dataclass(frozen=True)
class Optimus(Policy):
    """Everybody gets its smallest size while there is room; then, again and again, the next size that saves most time per device.

    In the regime `pollux` it is the baseline of Pollux' simulator, which knows true step times (an oracle).
    """

    name: ClassVar[str] = "optimus"
    paper: ClassVar[str] = (
        "Peng, Bao, Chen, Wu, Guo: Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters (EuroSys 2018)"
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        return plan_of(snapshot, [(pool, marginal_gains(pool)) for pool in pools(snapshot)])


def marginal_gains(pool: Pool) -> Ints:
    """Devices per job of the pool; ties go to the one that came first."""
    curves, left = pool.curves, pool.capacity
    work = pool.of(pool.snapshot.jobs.remaining)
    entry, size = curves.first[:-1].copy(), np.zeros(len(pool), dtype=np.int64)
    offers: list[tuple[float, int]] = []

    def offer(job: int) -> None:
        here = int(entry[job])
        if here + 1 < curves.first[job + 1]:
            saved = float(work[job]) * (1.0 / curves.rate[here] - 1.0 / curves.rate[here + 1])
            if saved > 0.0:
                heapq.heappush(offers, (-saved / float(curves.size[here + 1] - curves.size[here]), job))

    for job in range(len(pool)):
        least = int(curves.least[job])
        if 0 < least <= left:
            size[job], left = least, left - least
            offer(job)
    while left > 0 and offers:
        _, job = heapq.heappop(offers)
        more = int(curves.size[entry[job] + 1] - curves.size[entry[job]])
        if more <= left:
            entry[job] += 1
            size[job], left = curves.size[entry[job]], left - more
            offer(job)
    return size
