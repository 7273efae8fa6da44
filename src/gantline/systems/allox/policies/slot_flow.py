"""The matching as a small flow: jobs to (type, position) classes, classes to the sink at the machines' release times.

A slot of machine i, k-th from the end, costs a job ``release_i + k * time``. The first part does not know the job and
the second not the machine, so two jobs in slots of one type and one k may swap at no cost. All those slots are
therefore one class with a convex price list, the sorted release times, and 2,000 machines of four types with queues a
dozen deep are some fifty nodes. Prices per class are the dual variables; a solve begins from any prices, places each
job where it is cheapest under them and repairs what does not balance along shortest paths, so that prices from the
last decision leave little to do. Whole numbers throughout: equal is equal, whatever the history.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel

FAR = np.int64(2**62)
FORBIDDEN = np.int64(-1)


class SlotProblem(NamedTuple):
    """What there is to place, where, and at which prices; see `solve_slots`."""

    times: Ints
    release: Ints
    offset: Ints
    price: Ints
    depth: Ints


class SlotPath(NamedTuple):
    """How far each class is, whether that is settled, and how it is reached: from which class, by moving which job."""

    distance: Ints
    seen: Bools
    from_node: Ints
    by_job: Ints


@compiled
def solve_slots(times: Ints, release: Ints, offset: Ints, price: Ints, depth: Ints, place: Ints) -> int:
    """Find a least-cost placement; return the number of repairs, or -1 if some job has nowhere to go.

    ``times[t, j]`` is job j's time on type t (FORBIDDEN if it cannot run there), ``release[offset[t]:offset[t + 1]]``
    the sorted release times of type t. Changed in place: ``price[t, k - 1]``, ``depth[t]`` (how many positions have
    prices) and ``place[j] = t * price.shape[1] + k - 1``, on entry a guess or -1.
    """
    types, levels = price.shape
    jobs = times.shape[1]
    sink = types * levels
    used, excess = np.zeros(sink, np.int64), np.zeros(sink + 1, np.int64)
    first, after, before = np.full(sink, -1, np.int64), np.full(jobs, -1, np.int64), np.full(jobs, -1, np.int64)

    open_levels(release, offset, price, depth)
    for j in range(jobs):
        cheapest = cheapest_slot(times, price, depth, place[j], j)
        if cheapest < 0:
            return -1
        place[j] = cheapest
        excess[cheapest] += 1
        link(first, after, before, j, cheapest)
    for t in range(types):
        for k in range(depth[t]):
            c = t * levels + k
            ready = release[offset[t] : offset[t + 1]]
            low, high = np.searchsorted(ready, price[t, k]), np.searchsorted(ready, price[t, k], side="right")
            used[c] = min(max(excess[c], low), high)
            excess[c] -= used[c]
            excess[sink] -= excess[c]
    for t in range(types):
        deepen(t, release, offset, price, depth, used)

    further, settled = np.zeros(sink + 1, np.int64), np.zeros(sink + 1, np.bool_)
    path = SlotPath(further, settled, np.full(sink + 1, -1, np.int64), np.full(sink + 1, -1, np.int64))
    from_node, by_job = path.from_node, path.by_job
    slots = SlotProblem(times, release, offset, price, depth)
    repairs = 0
    while True:
        target = search(slots, used, excess, first, after, path)
        if target < 0:
            return repairs
        reprice(price, depth, path.distance, path.seen, target)
        node = target
        while from_node[node] >= 0:
            previous, j = from_node[node], by_job[node]
            if j >= 0:
                unlink(first, after, before, j, place[j])
                place[j] = node
                link(first, after, before, j, node)
            elif node == sink:
                used[previous] += 1
            else:
                used[node] -= 1
            node = previous
        excess[node] -= 1
        excess[target] += 1
        for t in range(types):
            deepen(t, release, offset, price, depth, used)
        repairs += 1


@kernel
def open_levels(release: Ints, offset: Ints, price: Ints, depth: Ints) -> None:
    """Give every type positions down to the first that costs no more than its first machine: deeper ones are worse."""
    for t in range(price.shape[0]):
        if offset[t] == offset[t + 1]:
            depth[t] = 0
            continue
        earliest = release[offset[t]]
        k = 0
        while k < price.shape[1]:
            if k >= depth[t]:
                price[t, k] = earliest
            k += 1
            if price[t, k - 1] <= earliest:
                break
        depth[t] = k


@kernel
def deepen(t: int, release: Ints, offset: Ints, price: Ints, depth: Ints, used: Ints) -> None:
    """Open one more position below the last when that is in use."""
    levels = price.shape[1]
    while 0 < depth[t] < levels and used[t * levels + depth[t] - 1] > 0:
        price[t, depth[t]] = release[offset[t]]
        depth[t] += 1


@kernel
def cheapest_slot(times: Ints, price: Ints, depth: Ints, guess: int, j: int) -> int:
    """The class in which job j is cheapest: the guess if it is one of them, else the first."""
    levels = price.shape[1]
    best, cheapest = FAR, -1
    for t in range(price.shape[0]):
        if times[t, j] == FORBIDDEN:
            continue
        for k in range(depth[t]):
            cost = (k + 1) * times[t, j] + price[t, k]
            if cost < best or (cost == best and t * levels + k == guess):
                best, cheapest = cost, t * levels + k
    return cheapest


@kernel
def link(first: Ints, after: Ints, before: Ints, j: int, c: int) -> None:
    """Put job j on the list of class c."""
    after[j], before[j] = first[c], -1
    if first[c] >= 0:
        before[first[c]] = j
    first[c] = j


@kernel
def unlink(first: Ints, after: Ints, before: Ints, j: int, c: int) -> None:
    """Take job j off the list of class c."""
    if before[j] >= 0:
        after[before[j]] = after[j]
    else:
        first[c] = after[j]
    if after[j] >= 0:
        before[after[j]] = before[j]


@kernel
def search(slots: SlotProblem, used: Ints, excess: Ints, first: Ints, after: Ints, path: SlotPath) -> int:
    """Shortest path (Dijkstra) from any node with too many to one with too few; -1 when all balance."""
    times, release, offset, price, depth = slots
    distance, seen, from_node, by_job = path
    types, levels = price.shape
    sink = types * levels
    seen[sink], from_node[sink], by_job[sink] = False, -1, -1
    distance[sink] = 0 if excess[sink] > 0 else FAR
    for t in range(types):
        for c in range(t * levels, t * levels + depth[t]):
            seen[c], from_node[c], by_job[c] = False, -1, -1
            distance[c] = 0 if excess[c] > 0 else FAR
    while True:
        node, nearest = -1, FAR
        for t in range(types):
            for c in range(t * levels, t * levels + depth[t]):
                if not seen[c] and distance[c] < nearest:
                    node, nearest = c, distance[c]
        if not seen[sink] and distance[sink] < nearest:
            node, nearest = sink, distance[sink]
        if node < 0 or excess[node] < 0:
            return node
        seen[node] = True
        if node == sink:
            for t in range(types):
                for k in range(depth[t]):
                    c = t * levels + k
                    if used[c] > 0:
                        d = nearest + price[t, k] - release[offset[t] + used[c] - 1]
                        if d < distance[c]:
                            distance[c], from_node[c], by_job[c] = d, sink, -1
            continue
        t, k = node // levels, node % levels
        if used[node] < offset[t + 1] - offset[t]:
            d = nearest + release[offset[t] + used[node]] - price[t, k]
            if d < distance[sink]:
                distance[sink], from_node[sink], by_job[sink] = d, node, -1
        j = first[node]
        while j >= 0:
            base = nearest - (k + 1) * times[t, j] - price[t, k]
            for to in range(types):
                time = times[to, j]
                if time == FORBIDDEN:
                    continue
                for level in range(depth[to]):
                    d = base + (level + 1) * time + price[to, level]
                    c = to * levels + level
                    if d < distance[c]:
                        distance[c], from_node[c], by_job[c] = d, node, j
            j = after[j]


@kernel
def reprice(price: Ints, depth: Ints, distance: Ints, seen: Bools, target: int) -> None:
    """Raise the prices of the nodes nearer than the target so that the path to it costs nothing; the sink's stays 0."""
    types, levels = price.shape
    sink = types * levels
    reach = distance[target]
    sink_rise = reach - distance[sink] if seen[sink] else np.int64(0)
    for t in range(types):
        for k in range(depth[t]):
            c = t * levels + k
            rise = reach - distance[c] if seen[c] else np.int64(0)
            price[t, k] += rise - sink_rise
