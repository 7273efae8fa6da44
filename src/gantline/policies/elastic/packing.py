"""Layouts of elastic jobs on nodes: packed anew, in buddy blocks, or brought together where that pays.

A layout is a matrix, jobs x nodes: the workers of each job on each node.

Voda (Hsieh and Lee, IC2E 2023) packs all jobs from nothing onto copies of the nodes, the largest first, each into the
fullest node that still holds it whole; then it matches these anonymous nodes with the real ones by their overlap. So
jobs span few nodes first, and few workers move second. Here no node is overbooked, workers are conserved, and a
packed node is only bound to a node that is large enough.

Buddy blocks are for gangs of powers of two on equal nodes (ElasticFlow, ASPLOS 2023), of which then none spans more
nodes than it must: whole nodes go to gangs that fill them; the others, largest first, take the smallest free block
that holds them, halved until it fits. This never fails while there are devices enough: what is free is always whole
blocks of the sizes that are still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def fits_buddies(sizes: Ints, capacity: Ints) -> bool:
    """Whether buddy blocks place them all for sure: equal nodes and sizes, all powers of two; a size of 0 is no gang."""
    numbers = np.append(sizes[sizes > 0], capacity[:1])
    return bool(len(capacity) and (capacity == capacity[0]).all() and ((numbers > 0) & (numbers & (numbers - 1) == 0)).all())


def place_buddies(sizes: Ints, nodes: int, gpus: int) -> Ints:
    """The layout of these gangs on so many nodes of `gpus` devices, from nothing; `migration.bind` gives the nodes their real places.

    Sizes that are no power of two take the block above. Ties: the earlier job, the earlier block.
    """
    if gpus < 1 or gpus & (gpus - 1):
        raise UsageError(f"nodes of {gpus} GPUs", where="buddy placement", fix="a power of two")
    layout = np.zeros((len(sizes), nodes), dtype=np.int64)
    lacking = _place(largest_first(sizes), sizes, gpus, np.full(nodes, gpus, dtype=np.int64), layout)
    if lacking >= 0:
        raise UsageError(f"job {lacking} finds no block for its {sizes[lacking]} GPUs", where="buddy placement", fix="ask for fewer")
    return layout


@kernel
def _place(order: Ints, sizes: Ints, gpus: int, free: Ints, layout: Ints) -> int:
    """``free``: the sizes of each node's free blocks, added up; no node has two of a size. The job that finds no block; -1: none."""
    for job in order:
        left = sizes[job]
        while left > 0:
            wanted = 1
            while wanted < left and wanted < gpus:
                wanted *= 2
            block, place = wanted, -1
            while place < 0 and block <= gpus:
                for node in range(free.size):
                    if free[node] & block:
                        place = node
                        break
                if place < 0:
                    block *= 2
            if place < 0:
                return int(job)
            free[place] -= wanted  # the rest of the block is one half, one quarter, ... down to the block's own size
            taken = min(left, wanted)
            layout[job, place] += taken
            left -= taken
    return -1


Saved = Callable[[int, Sequence[int], Sequence[int]], float]  # job, nodes it is on now, nodes it would be on -> seconds saved to its end


def defragment(now: Ints, capacity: Ints, saved: Saved, cost: Callable[[int], float]) -> Ints:
    """The layout (jobs x nodes) after all single moves that pay: again and again the job that gains most over its cost, until none gains.

    A move puts a job on the fewest nodes that have room for it, the ones it sits on first; others stay where they are. Ties: the
    earlier job. No job moves twice.
    """
    layout = now.copy()
    free = capacity - layout.sum(axis=0)
    needed = -(-layout.sum(axis=1) // int(capacity.max(initial=1)))
    spread = np.flatnonzero((layout > 0).sum(axis=1) > needed).tolist()  # jobs on more nodes than the largest ones would need
    while True:
        best, gain = None, 0.0
        for job in spread:
            held, target = layout[job], _together(layout[job], free + layout[job])
            before, after = np.flatnonzero(held).tolist(), np.flatnonzero(target).tolist()
            if len(after) < len(before):
                worth = saved(job, before, after) - cost(job)
                if worth > gain:
                    best, gain = (job, target), worth
        if best is None:
            return layout
        job, target = best
        spread.remove(job)
        free += layout[job] - target
        layout[job] = target


def _together(held: Ints, room: Ints) -> Ints:
    """Workers per node if a job sat on as few nodes as have room: on one that fits best, else filling the emptiest first."""
    left, found, room = int(held.sum()), np.zeros_like(held), room.copy()
    while left > 0:
        whole = np.flatnonzero(room >= left)
        order = np.lexsort((whole, room[whole], -held[whole])) if len(whole) else np.lexsort((-held, -room))
        place = int(whole[order[0]]) if len(whole) else int(order[0])
        found[place] = min(int(room[place]), left)
        left -= int(found[place])
        room[place] = 0
    return found
