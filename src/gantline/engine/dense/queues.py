"""Those who wait, in one lane per gang size, each sorted by (key, row).

Whoever does not fit keeps everybody of its size waiting for the rest of a pass, so a pass only ever looks at the first of each lane. A
lane is a ring: jobs that come in order are appended, and a job in between moves the shorter side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel

# rows of `lane`: gang size, first place of its ring, size of the ring less one, place of the first job in it, jobs, why the last one waits
SIZE, BASE, MASK, HEAD, COUNT, WHY, LANE_ROWS = range(7)


class Queues(NamedTuple):
    lane: Ints  # (what, lane), lanes by rising size
    key: Floats
    row: Ints32
    waiting: Ints  # how many in all


def queues(needs: Ints) -> tuple[Queues, Ints]:
    """Empty lanes for rows of these sizes, and the lane of every row."""
    sizes, lane_of, members = np.unique(needs, return_inverse=True, return_counts=True)
    rings = 1 << np.ceil(np.log2(np.maximum(members, 2))).astype(np.int64)
    lane = np.zeros((LANE_ROWS, len(sizes)), dtype=np.int64)
    lane[SIZE], lane[MASK] = sizes, rings - 1
    lane[BASE] = np.cumsum(rings) - rings
    room = int(rings.sum())
    return Queues(lane, np.empty(room), np.empty(room, dtype=np.int32), np.zeros(1, dtype=np.int64)), lane_of.astype(np.int64)


@kernel
def first_behind(q: Queues, lane: int, key: float, row: int) -> int:
    """How many of the lane rank before (key, row)."""
    base, mask, head = q.lane[BASE, lane], q.lane[MASK, lane], q.lane[HEAD, lane]
    low, high = 0, q.lane[COUNT, lane]
    while low < high:
        middle = (low + high) >> 1
        at = base + ((head + middle) & mask)
        if q.key[at] < key or (q.key[at] == key and q.row[at] < row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def enter(q: Queues, lane: int, key: float, row: int) -> None:
    """Put a row where it belongs in its lane."""
    base, mask, head, count = q.lane[BASE, lane], q.lane[MASK, lane], q.lane[HEAD, lane], q.lane[COUNT, lane]
    last = base + ((head + count - 1) & mask)
    place = count
    if count > 0 and (q.key[last] > key or (q.key[last] == key and q.row[last] > row)):
        place = first_behind(q, lane, key, row)
    if place < count - place:
        head = (head - 1) & mask
        q.lane[HEAD, lane] = head
        for k in range(place):
            to, source = base + ((head + k) & mask), base + ((head + k + 1) & mask)
            q.key[to] = q.key[source]
            q.row[to] = q.row[source]
    else:
        for k in range(count, place, -1):
            to, source = base + ((head + k) & mask), base + ((head + k - 1) & mask)
            q.key[to] = q.key[source]
            q.row[to] = q.row[source]
    at = base + ((head + place) & mask)
    q.key[at] = key
    q.row[at] = row
    q.lane[COUNT, lane] = count + 1
    q.waiting[0] += 1


@kernel
def leave(q: Queues, lane: int) -> None:
    """Take the first of the lane out."""
    q.lane[HEAD, lane] = (q.lane[HEAD, lane] + 1) & q.lane[MASK, lane]
    q.lane[COUNT, lane] -= 1
    q.waiting[0] -= 1


@kernel
def first_lane(q: Queues, hope: int) -> int:
    """The lane, among gangs of at most `hope` devices, whose first ranks before the others'; -1: none."""
    best = -1
    best_key, best_row = 0.0, 0
    for lane in range(q.lane.shape[1]):
        if q.lane[SIZE, lane] > hope:
            break
        if q.lane[COUNT, lane] == 0:
            continue
        at = q.lane[BASE, lane] + q.lane[HEAD, lane]
        if best < 0 or q.key[at] < best_key or (q.key[at] == best_key and q.row[at] < best_row):
            best, best_key, best_row = lane, q.key[at], q.row[at]
    return best


@kernel
def key_behind(q: Queues, key: float, row: int) -> float:
    """The key of the first who waits and ranks behind (key, row); infinity: nobody."""
    found = np.inf
    for lane in range(q.lane.shape[1]):
        place = first_behind(q, lane, key, row)
        if place < q.lane[COUNT, lane]:
            at = q.lane[BASE, lane] + ((q.lane[HEAD, lane] + place) & q.lane[MASK, lane])
            found = min(found, q.key[at])
    return found
