"""What one solve leaves for the next: prices per class and every job's place, as plain arrays.

It speeds the next solve up and has no influence on its answer, so it may be dropped, or come from another instance.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.systems.allox.policies.columns import SlotPrices

State = dict[str, Ints]
Parts = tuple[Ints, Ints, Ints, Ints, Ints]


def unpack(state: State | None, types: int) -> Parts:
    """The arrays of a state: price, depth, job names in order, and each job's type and position."""
    if state is None or len(state["price"]) != types:
        nothing = np.empty(0, np.int64)
        return np.empty((types, 0), np.int64), np.zeros(types, np.int64), nothing, nothing, nothing
    return state["price"], state["depth"], state["jobs"], state["type"], state["position"]


def pack(parts: Parts) -> State:
    """The inverse of `unpack`."""
    return dict(zip(("price", "depth", "jobs", "type", "position"), parts))


@compiled
def recall(known: Parts, names: Ints) -> tuple[Ints, Ints, Ints]:
    """SlotPrices, depths and guesses at the places of the named jobs (-1: none), with a position for each job."""
    price, depth, jobs, kind, position = known
    types, known_levels = price.shape
    levels = max(names.size, 1)
    kept = min(levels, known_levels)
    prices, depths = np.zeros((types, levels), np.int64), np.zeros(types, np.int64)
    for t in range(types):
        depths[t] = min(depth[t], kept)
        prices[t, :kept] = price[t, :kept]
    place = np.full(names.size, -1, np.int64)
    for j in range(names.size):
        i = np.searchsorted(jobs, names[j])
        if i < jobs.size and jobs[i] == names[j] and position[i] <= kept:
            place[j] = kind[i] * levels + position[i] - 1
    return prices, depths, place


@compiled
def remember(names: Ints, prices: SlotPrices) -> Parts:
    """The prices in use and the places of the jobs that have one, jobs in order of their names."""
    price, depth, place = prices.price, prices.depth, prices.place
    count = deepest = 0
    for j in range(place.size):
        count += place[j] >= 0
    for t in range(depth.size):
        deepest = max(deepest, depth[t])
    placed, named = np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = 0
    for j in range(place.size):
        if place[j] >= 0:
            placed[at], named[at] = j, names[j]
            at += 1
    jobs, kind, position = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    order = np.argsort(named, kind="mergesort")
    for i in range(count):
        j = placed[order[i]]
        jobs[i], kind[i], position[i] = names[j], place[j] // price.shape[1], place[j] % price.shape[1] + 1
    return price[:, :deepest].copy(), depth, jobs, kind, position
