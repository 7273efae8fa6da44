"""FfDL's optimizer (Saxena et al., MASCOTS 2020): the sizes of all kept jobs with the greatest sum of speedups.

A dynamic program over jobs and devices. Where every curve bends down (each further device adds no more than the one before), taking
the best step again and again is the same and much quicker.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled
from gantline.policies.elastic.pools import Curves


def best_sum(curves: Curves, kept: Ints, capacity: int) -> Ints:
    """Sizes of the kept jobs (whose minima fit together) that maximise the sum of speedups; the others get nothing.

    Ties: of equal sums, jobs further back in `kept` get less.
    """
    grants = np.zeros(len(curves), dtype=np.int64)
    if not len(kept) or capacity <= 0:
        return grants
    if _all_concave(curves, kept):
        return _by_steps(curves, kept, capacity, grants)
    choice = np.zeros((len(kept), capacity + 1), dtype=np.int16)
    fill_choices(curves.first, curves.size, curves.speedup, kept, capacity, choice)
    left = capacity
    for j in range(len(kept) - 1, -1, -1):
        entry = curves.first[kept[j]] + int(choice[j, left])
        grants[kept[j]] = curves.size[entry]
        left -= int(curves.size[entry])
    return grants


def _all_concave(curves: Curves, kept: Ints) -> bool:
    """Whether steps are single devices and gains never rise; gaps and rising gains need the dynamic program."""
    inside = np.zeros(len(curves.size), dtype=bool)
    for job in kept.tolist():
        inside[curves.first[job] + 1 : curves.first[job + 1]] = True
    step, gain = np.diff(curves.size, prepend=0), np.diff(curves.speedup, prepend=0.0)
    second = inside.copy()
    starts = curves.first[:-1][curves.first[:-1] < len(inside)]
    after = starts + 1
    second[after[after < len(inside)]] = False
    rising = np.diff(gain, prepend=0.0) > 1e-12
    return bool((step[inside] == 1).all() and not rising[second].any())


def _by_steps(curves: Curves, kept: Ints, capacity: int, grants: Ints) -> Ints:
    size, speedup, ends = curves.size.tolist(), curves.speedup.tolist(), curves.first[1:].tolist()
    entry = {job: int(curves.first[job]) for job in kept.tolist()}
    free = capacity - sum(size[at] for at in entry.values())
    heap = [
        (speedup[at] - speedup[at + 1], place, job)
        for place, (job, at) in enumerate(entry.items())
        if at + 1 < ends[job] and speedup[at + 1] > speedup[at]
    ]
    heapify(heap)
    while free > 0 and heap:
        _, place, job = heappop(heap)
        entry[job] += 1
        free -= 1
        at = entry[job]
        if at + 1 < ends[job] and speedup[at + 1] > speedup[at]:
            heappush(heap, (speedup[at] - speedup[at + 1], place, job))
    for job, at in entry.items():
        grants[job] = size[at]
    return grants


@compiled
def relax(total: Any, before: Any, choice: NDArray[np.int16], gain: Any, mark: np.int16) -> None:
    """One size of one job at every number of devices: where gain + before beats the total, both are noted (by selects, which vectorise)."""
    for k in range(total.size):
        other = gain + before[k]
        better = other > total[k]
        total[k] = other if better else total[k]
        choice[k] = mark if better else choice[k]


@compiled
def fill_choices(first: Ints, size: Ints, speedup: Floats, kept: Ints, capacity: int, choice: NDArray[np.int16]) -> None:
    """choice[j, k]: which size job j takes when the first j + 1 kept jobs share k devices; the smallest wins a tie."""
    before, now = np.zeros(capacity + 1), np.empty(capacity + 1)
    for j in range(kept.size):
        now[:] = -np.inf
        for at in range(first[kept[j]], first[kept[j] + 1]):
            need = size[at]
            relax(now[need:], before, choice[j, need:], speedup[at], np.int16(at - first[kept[j]]))
        before, now = now, before
