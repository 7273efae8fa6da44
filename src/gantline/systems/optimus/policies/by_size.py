"""Devices one by one to the job whose remaining time falls most by one more: Optimus for jobs that list sizes and speeds."""

from __future__ import annotations

import heapq

import numpy as np

from gantline.core.arrays import Ints
from gantline.policies.elastic.pools import Pool


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
