"""Devices one by one to the job whose remaining time falls most by one more: Optimus for jobs that list sizes and speeds."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.policies.elastic.pools import Pool


def marginal_gains(pool: Pool) -> Ints:
    """Devices per job of the pool; ties go to the one that came first."""
    curves, work = pool.curves, np.ascontiguousarray(pool.of(pool.snapshot.jobs.remaining), dtype=np.float64)
    size, entry, offer = np.zeros(len(pool), dtype=np.int64), curves.first[:-1].copy(), np.zeros(len(pool))
    _share(curves.first, curves.size, curves.rate, work, pool.capacity, size, entry, offer)
    return size


@kernel
def _share(first: Ints, sizes: Ints, rate: Floats, work: Floats, left: int, size: Ints, entry: Ints, offer: Floats) -> None:
    """``entry``: the size that each job has; ``offer``: seconds that its next size saves per device, 0 where it makes no offer."""
    jobs = size.size
    for job in range(jobs):
        if entry[job] < first[job + 1] and sizes[entry[job]] <= left:
            size[job] = sizes[entry[job]]
            left -= size[job]
            offer[job] = _saved(first, sizes, rate, work, entry, job)
    while left > 0:
        best = -1
        for job in range(jobs):
            if offer[job] > 0.0 and (best < 0 or offer[job] > offer[best]):
                best = job
        if best < 0:
            return
        more = sizes[entry[best] + 1] - sizes[entry[best]]
        offer[best] = 0.0
        if more <= left:
            entry[best] += 1
            size[best] = sizes[entry[best]]
            left -= more
            offer[best] = _saved(first, sizes, rate, work, entry, best)


@kernel
def _saved(first: Ints, sizes: Ints, rate: Floats, work: Floats, entry: Ints, job: int) -> float:
    """Seconds that the next size of a job saves per device; 0: it has none, or it is no faster."""
    here = entry[job]
    if here + 1 >= first[job + 1]:
        return 0.0
    saved = work[job] * (1.0 / rate[here] - 1.0 / rate[here + 1])
    return saved / float(sizes[here + 1] - sizes[here]) if saved > 0.0 else 0.0
