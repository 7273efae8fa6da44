"""At most one column per job within one count of devices, for the greatest saving: exact, by a dynamic program over the count.

Row by row, the best saving of the jobs so far is known for every number of devices; a job adds its columns to the row before. The cost is
jobs x devices x columns per job, an addition each, whatever the savings are: unlike branch and bound there are no hard instances.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

LARGEST = 20_000_000  # cells of jobs x devices; beyond it the table of choices is too large to be quick


def separate_counts(job: Ints, use: Floats, free: Floats, jobs: int) -> Ints | None:
    """The one resource of each job's columns (-1: it has none); None where jobs choose between resources, or programs are too large."""
    needs = use > 0.0
    if not len(job) or np.any(needs.sum(axis=1) != 1) or np.any(use != np.floor(use)):
        return None
    resource = needs.argmax(axis=1)
    of_job = np.full(jobs, -1, dtype=np.int64)
    of_job[job] = resource
    if np.any(of_job[job] != resource) or jobs * (float(free.max()) + 1.0) > LARGEST:
        return None
    return of_job


def choose_by_count(job: Ints, count: Ints, saving: Floats, capacity: int) -> Ints:
    """Positions of the chosen columns, ascending. Of answers that save the same, later jobs get fewer devices or none."""
    order = np.lexsort((count, job))
    names, first = np.unique(job[order], return_index=True)
    ends = np.append(first[1:], len(order)).astype(np.int64)
    sizes = count[order].astype(np.int64)
    room = int(min(capacity, np.maximum.reduceat(sizes, first).sum()))
    before, now = np.zeros(room + 1), np.zeros(room + 1)
    taken = np.zeros((len(names), room + 1), dtype=np.int16)
    chosen = np.full(len(names), -1, dtype=np.int64)
    _choose(first.astype(np.int64), ends, sizes, saving[order], before, now, taken, chosen)
    return np.sort(order[chosen[chosen >= 0]])


@kernel
def _choose(
    first: Ints, ends: Ints, size: Ints, saving: Floats, before: Floats, now: Floats, taken: NDArray[np.int16], chosen: Ints
) -> None:
    """``taken[j, k]``: which of its columns job j takes, counted from one, when the jobs up to it share k devices; 0: none."""
    room = before.size - 1
    for j in range(first.size):
        for k in range(room + 1):
            now[k] = before[k]
        for at in range(first[j], ends[j]):
            need, gain, mark = size[at], saving[at], np.int16(at - first[j] + 1)
            for k in range(need, room + 1):
                other = before[k - need] + gain
                better = other > now[k]
                now[k] = other if better else now[k]
                taken[j, k] = mark if better else taken[j, k]
        for k in range(room + 1):
            before[k] = now[k]
    left = room
    for j in range(first.size - 1, -1, -1):
        which = int(taken[j, left])
        if which > 0:
            chosen[j] = first[j] + which - 1
            left -= size[chosen[j]]
