"""From classes to machines: which job runs where, after which other, from when."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import compiled_from_zero as compiled


@compiled
def sequence(times: Ints, release: Ints, offset: Ints, levels: int, place: Ints) -> tuple[Ints, Ints]:
    """Give each job a machine (index into ``release``) and a starting time.

    Jobs of one class may swap machines at no cost, so within a class the earliest arrival gets the machine that is
    ready first (equal ones: in the order of ``release``). Positions are filled from the front, from the highest k.
    """
    jobs = place.size
    machine, begin = np.full(jobs, -1, np.int64), np.zeros(jobs, np.int64)
    ready = release.copy()
    count = np.zeros((offset.size - 1) * levels + 1, np.int64)
    for j in range(jobs):
        count[place[j] + 1] += 1
    for k in range(1, count.size):
        count[k] += count[k - 1]
    slot, first = count, count.copy()
    members = np.zeros(jobs, np.int64)
    for j in range(jobs):
        members[slot[place[j]]] = j
        slot[place[j]] += 1
    for t in range(offset.size - 1):
        for k in range(levels - 1, -1, -1):
            c = t * levels + k
            size = first[c + 1] - first[c]
            if size == 0:
                continue
            by_ready = np.argsort(ready[offset[t] : offset[t] + size], kind="mergesort")
            for i in range(size):
                j, m = members[first[c] + i], offset[t] + by_ready[i]
                machine[j], begin[j] = m, ready[m]
                ready[m] += times[t, j]
    return machine, begin
