"""Two objectives at once: which members are dominated by none, and how crowded they are (Deb et al., NSGA-II, 2002).

Both objectives are minimised. Sorted by the first and then the second, the members of a front follow one another with a falling
second objective, so one pass finds all fronts and another all crowding distances.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel

SIDE: Final = 16  # numbers that are compared side by side


@kernel
def sort_by(value: Floats, order: Ints, begin: int, end: int, keys: Floats, room: Ints, equals: Ints) -> None:
    """Sort a stretch of ``order`` by a number of each; equals keep their order.

    Each is put where it belongs by counting those before it: for hundreds this is quicker than sorting, because no step depends on how
    a comparison ends, and several are made at once. ``keys`` has `SIDE` places more than there are to sort.
    """
    count = end - begin
    whole = (count + SIDE - 1) // SIDE * SIDE
    for i in range(count):
        keys[i], room[i] = value[order[begin + i]], order[begin + i]
    for i in range(count, whole):
        keys[i] = np.inf  # before none
    for i in range(count):
        equals[i] = 0
    for i in range(count):
        mine, before = keys[i], 0
        for j in range(whole):
            before += keys[j] < mine
        order[begin + before + equals[before]] = room[i]
        equals[before] += 1


@kernel
def sort_by_objectives(first: Floats, second: Floats, order: Ints, count: int, keys: Floats, room: Ints, equals: Ints) -> None:
    """Sort the first ``count`` of ``order`` by (first, second) objective; equals keep their order."""
    sort_by(first, order, 0, count, keys, room, equals)
    for i in range(1, count):
        one = order[i]
        j = i
        while j > 0 and first[order[j - 1]] == first[one] and second[order[j - 1]] > second[one]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = one


@kernel
def merge_by_objectives(first: Floats, second: Floats, order: Ints, count: int, others: Ints, more: int, room: Ints) -> None:
    """Merge two sorted lists into ``order``, equals by their numbers."""
    for i in range(count):
        room[i] = order[i]
    i = j = 0
    while i < count and j < more:
        one, two = room[i], others[j]
        a, b, c, d = first[one], second[one], first[two], second[two]
        mine = int((a < c) | ((a == c) & ((b < d) | ((b == d) & (one < two)))))
        order[i + j] = two + mine * (one - two)  # no branch: it could not be foretold
        i += mine
        j += 1 - mine
    while i < count:
        order[i + j] = room[i]
        i += 1
    while j < more:
        order[i + j] = others[j]
        j += 1


@kernel
def find_fronts(first: Floats, second: Floats, order: Ints, count: int, rank: Ints, keys: Floats) -> int:
    """The front of each of ``order`` (sorted by objectives) into ``rank``; how many fronts there are.

    A member belongs behind all fronts whose last member dominates it. Those are the ones whose second objective is not above its own,
    unless it is a copy: then it belongs where the one before it does. They are counted; ``keys`` has `SIDE` places more than members.
    """
    found, low, whole = 0, 0, 0
    x = y = np.nan
    for i in range(count):
        one = order[i]
        a, b = first[one], second[one]
        if a != x or b != y:
            low = 0
            for front in range(whole):
                low += keys[front] <= b
        rank[one] = low
        x, y = a, b
        if low == found:
            found += 1
            if found > whole:
                for front in range(whole, whole + SIDE):
                    keys[front] = np.inf
                whole += SIDE
        keys[low] = b
    return found


@kernel
def count_fronts(order: Ints, count: int, rank: Ints, fronts: int, begin: Ints) -> None:
    """Where each front begins if the first ``count`` of ``order`` are grouped by front."""
    for front in range(fronts + 1):
        begin[front] = 0
    for i in range(count):
        begin[rank[order[i]] + 1] += 1
    for front in range(fronts):
        begin[front + 1] += begin[front]


@kernel
def group_by_front(order: Ints, count: int, rank: Ints, fronts: int, begin: Ints, grouped: Ints) -> None:
    """The first ``count`` of ``order`` by front, each front in the order it had; ``begin`` as it is counted."""
    for i in range(count):
        front = rank[order[i]]
        grouped[begin[front]] = order[i]
        begin[front] += 1
    for front in range(fronts, 0, -1):
        begin[front] = begin[front - 1]
    begin[0] = 0


@kernel
def crowding(first: Floats, second: Floats, order: Ints, begin: int, end: int, distance: Floats, distinct: Ints) -> None:
    """Crowding distances within a front, a stretch that is sorted by objectives. Repeated objectives count 0, the ends infinity."""
    count = 0
    for i in range(begin, end):
        one = order[i]
        distance[one] = np.inf if end - begin <= 2 else 0.0
        if count > 0:
            before = distinct[count - 1]
            if first[before] == first[one] and second[before] == second[one]:
                continue
        distinct[count] = one
        count += 1
    if end - begin <= 2:
        return
    left, right = distinct[0], distinct[count - 1]
    width, height = first[right] - first[left], second[left] - second[right]
    distance[left] = distance[right] = np.inf
    for i in range(1, count - 1):
        before, after = distinct[i - 1], distinct[i + 1]
        gap = 0.0
        if width > 0.0:
            gap += (first[after] - first[before]) / width
        if height > 0.0:
            gap += (second[before] - second[after]) / height
        distance[distinct[i]] = gap
