"""From classes to machines: which job runs where, after which other, from when."""

from __future__ import annotations

from gantline.core.arrays import Ints
from gantline.core.fresh import ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.stable_order import stable_order


@compiled
def sequence(times: Ints, release: Ints, offset: Ints, levels: int, place: Ints) -> tuple[Ints, Ints]:
    """Give each job a machine (index into ``release``) and a starting time.

    Jobs of one class may swap machines at no cost, so within a class the earliest arrival gets the machine that is
    ready first (equal ones: in the order of ``release``). Positions are filled from the front, from the highest k.
    """
    jobs = place.size
    machine, begin, by_ready, spare = ints(jobs, -1), ints(jobs, 0), ints(jobs, 0), ints(jobs, 0)
    ready = release.copy()
    count = ints((offset.size - 1) * levels + 1, 0)
    for j in range(jobs):
        count[place[j] + 1] += 1
    for k in range(1, count.size):
        count[k] += count[k - 1]
    slot, first = count, count.copy()
    members = ints(jobs, 0)
    for j in range(jobs):
        members[slot[place[j]]] = j
        slot[place[j]] += 1
    for t in range(offset.size - 1):
        for k in range(levels - 1, -1, -1):
            c = t * levels + k
            size = first[c + 1] - first[c]
            if size == 0:
                continue
            stable_order(ready, offset[t], size, by_ready, spare)
            for i in range(size):
                j, m = members[first[c] + i], offset[t] + by_ready[i]
                machine[j], begin[j] = m, ready[m]
                ready[m] += times[t, j]
    return machine, begin
