"""Where the workers of elastic jobs sit after their sizes changed: packed anew, then bound to real nodes so that the fewest workers move.

Voda (Hsieh and Lee, IC2E 2023) packs all jobs from nothing onto copies of the nodes, the largest first, each into the fullest node that
still holds it whole; then it matches these anonymous nodes with the real ones by their overlap. So jobs span few nodes first, and few
workers move second. Here no node is overbooked, workers are conserved, and a packed node is only bound to a node that is large enough.

A layout is a matrix, jobs x nodes: the workers of each job on each node.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.core.jit import kernel


def rearrange(sizes: Ints, now: Ints, capacity: Ints, packed: Ints | None = None) -> Ints:
    """The layout for these sizes (a job of size 0 has ended), given the present one; `packed`: a layout to bind in place of best fit."""
    return bind(pack(sizes, capacity) if packed is None else packed, release(sizes, now), capacity)


def release(sizes: Ints, now: Ints) -> Ints:
    """What is left after jobs ended and others shrank; workers leave from the last node on, as ranks are numbered through the nodes."""
    left = now.copy()
    _release(sizes, left)
    return left


@kernel
def _release(sizes: Ints, left: Ints) -> None:
    jobs, nodes = left.shape
    for job in range(jobs):
        excess = -sizes[job]
        for node in range(nodes):
            excess += left[job, node]
        node = nodes - 1
        while excess > 0 and node >= 0:
            leave = min(excess, left[job, node])
            left[job, node] -= leave
            excess -= leave
            node -= 1


def pack(sizes: Ints, capacity: Ints) -> Ints:
    """Best fit by size, descending: the fullest node that holds a job whole, else the emptiest is filled and the rest goes on.

    Ties: the earlier job, the earlier node.
    """
    if sizes.sum() > capacity.sum():
        raise UsageError(f"{sizes.sum()} workers do not fit on {capacity.sum()} devices", where="placement", fix="ask for fewer")
    layout = np.zeros((len(sizes), len(capacity)), dtype=np.int64)
    _pack(largest_first(sizes), sizes, capacity.copy(), layout)
    return layout


def largest_first(sizes: Ints) -> Ints:
    """Jobs by size, descending; of equal ones the earlier."""
    return np.argsort(-sizes, kind="stable")


@kernel
def _pack(order: Ints, sizes: Ints, free: Ints, layout: Ints) -> None:
    for job in order:
        left = sizes[job]
        while left > 0:
            holds, emptiest = -1, 0
            for node in range(free.size):
                if free[node] >= left and (holds < 0 or free[node] < free[holds]):
                    holds = node
                if free[node] > free[emptiest]:
                    emptiest = node
            place = holds if holds >= 0 else emptiest
            taken = min(left, free[place])
            layout[job, place] += taken
            free[place] -= taken
            left -= taken


def bind(packed: Ints, now: Ints, capacity: Ints) -> Ints:
    """Give the packed nodes their real places: the assignment with the greatest overlap, on nodes that are large enough."""
    n = len(capacity)
    worth, used = np.zeros((n, n), dtype=np.int64), packed.sum(axis=0)
    _overlap(packed, now, np.zeros(n, dtype=np.int64), worth)
    _weigh(worth, used, capacity, -2 * (int(used.sum()) + 1) * (n + 1))
    order, (rows, places) = np.empty(n, dtype=np.int64), linear_sum_assignment(worth, maximize=True)
    order[places] = rows
    return packed.take(order, axis=1)


@kernel
def _weigh(worth: Ints, used: Ints, capacity: Ints, impossible: int) -> None:
    """From overlaps to what is most: of equal overlaps the place where it was packed, and no node that is too small."""
    n = used.size
    for k in range(n):
        for place in range(n):
            worth[k, place] = impossible if used[k] > capacity[place] else worth[k, place] * (n + 1) + (1 if k == place else 0)


@kernel
def _overlap(packed: Ints, now: Ints, places: Ints, overlap: Ints) -> None:
    """Workers that stay where they are, if packed node k gets the place p: overlap[k, p]."""
    jobs, nodes = packed.shape
    for job in range(jobs):
        count = 0
        for place in range(nodes):
            if now[job, place] > 0:
                places[count] = place
                count += 1
        if count == 0:
            continue
        for k in range(nodes):
            workers = packed[job, k]
            if workers > 0:
                for at in range(count):
                    overlap[k, places[at]] += min(workers, now[job, places[at]])
