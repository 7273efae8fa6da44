"""Two objectives at once: who is dominated by nobody, and how crowded it is there (Deb et al., NSGA-II, 2002).

Both objectives are minimised. Sorted by the first and then the second, the members of a front follow one another with a falling
second objective, so one pass finds all fronts and another all crowding distances.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel


@kernel
def sort_by_objectives(objective: Floats, order: Ints, count: int) -> None:
    """Sort the first ``count`` of ``order`` by (first, second) objective; equals keep their order (shell sort with a tie rule)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            mine = order[i]
            a, b = objective[mine, 0], objective[mine, 1]
            j = i
            while j >= gap:
                other = order[j - gap]
                c, d = objective[other, 0], objective[other, 1]
                if c < a or (c == a and (d < b or (d == b and other < mine))):
                    break
                order[j] = other
                j -= gap
            order[j] = mine
        gap //= 3


@kernel
def dominates(objective: Floats, a: int, b: int) -> bool:
    """Whether one is nowhere worse and somewhere better."""
    x, y, u, v = objective[a, 0], objective[a, 1], objective[b, 0], objective[b, 1]
    return bool(x <= u and y <= v and (x < u or y < v))


@kernel
def find_fronts(objective: Floats, order: Ints, count: int, rank: Ints, last: Ints) -> int:
    """The front of each of ``order`` (sorted by objectives) into ``rank``; how many fronts there are. ``last`` is room to work."""
    found = 0
    for i in range(count):
        one = order[i]
        low, high = 0, found  # the first front whose last member does not dominate this one
        while low < high:
            middle = (low + high) // 2
            if dominates(objective, last[middle], one):
                low = middle + 1
            else:
                high = middle
        rank[one] = low
        last[low] = one
        found = max(found, low + 1)
    return found


@kernel
def group_by_front(order: Ints, count: int, rank: Ints, fronts: int, begin: Ints, room: Ints) -> None:
    """Sort the first ``count`` of ``order`` by front, each front in the order it had; where each begins goes into ``begin``."""
    for front in range(fronts + 1):
        begin[front] = 0
    for i in range(count):
        begin[rank[order[i]] + 1] += 1
    for front in range(fronts):
        begin[front + 1] += begin[front]
    for i in range(count):
        front = rank[order[i]]
        room[begin[front]] = order[i]
        begin[front] += 1
    for front in range(fronts, 0, -1):
        begin[front] = begin[front - 1]
    begin[0] = 0
    for i in range(count):
        order[i] = room[i]


@kernel
def crowding(objective: Floats, front: Ints, distance: Floats, distinct: Ints) -> None:
    """Crowding distances within a front that is sorted by objectives. Repeated objectives count 0, the ends infinity."""
    size, count = front.size, 0
    for i in range(size):
        one = front[i]
        distance[one] = np.inf if size <= 2 else 0.0
        if count > 0:
            before = distinct[count - 1]
            if objective[before, 0] == objective[one, 0] and objective[before, 1] == objective[one, 1]:
                continue
        distinct[count] = one
        count += 1
    if size <= 2:
        return
    first, final = distinct[0], distinct[count - 1]
    width = objective[final, 0] - objective[first, 0]
    height = objective[first, 1] - objective[final, 1]
    distance[first] = distance[final] = np.inf
    for i in range(1, count - 1):
        before, after = distinct[i - 1], distinct[i + 1]
        gap = 0.0
        if width > 0.0:
            gap += (objective[after, 0] - objective[before, 0]) / width
        if height > 0.0:
            gap += (objective[before, 1] - objective[after, 1]) / height
        distance[distinct[i]] = gap
