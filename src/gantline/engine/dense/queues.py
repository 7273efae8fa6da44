"""Waiting rows, in one lane per gang size, each sorted by (key, row).

A row that does not fit keeps all others of its size waiting for the rest of a pass, so a pass only ever looks at the first of each lane. A
lane is a ring: jobs that come in order are appended, and a job in between moves the shorter side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel


class Lane(Constants):
    """Rows of `lane`: gang size, first place of its ring, size of the ring less one, place of the first job in it,
    jobs, why the last one waits; for backfilling: the next job to look at, the instant before which no row of this
    size can start."""

    SIZE, BASE, MASK, HEAD, COUNT, WHY, CURSOR, HINT = range(8)


class Lanes(NamedTuple):
    lane: Ints  # (what, lane), lanes by rising size
    key: Floats
    row: Ints32
    first: Floats  # (lane,): key of the first in it; infinity where there is none
    length: Floats  # for backfilling: how long it takes, by its estimate
    least: Floats  # for backfilling: the shortest of it and all behind it
    waiting: Ints  # how many in all


def queues(needs: Ints, lengths: bool = False) -> tuple[Lanes, Ints]:
    """Empty lanes for rows of these sizes, and the lane of every row; `lengths`: they are needed, for backfilling."""
    of_size = np.bincount(needs)
    sizes = np.flatnonzero(of_size)
    members, lane_of = of_size[sizes], (np.cumsum(of_size > 0) - 1)[needs]
    ring = 1 << np.ceil(np.log2(np.maximum(members, 2))).astype(np.int64)
    lane = np.zeros((len(Lane), len(sizes)), dtype=np.int64)
    lane[Lane.SIZE], lane[Lane.MASK] = sizes, ring - 1
    lane[Lane.BASE] = np.cumsum(ring) - ring
    room = int(ring.sum())
    length, least = np.empty((2, room if lengths else 0))
    first = np.full(len(sizes), np.inf)
    rings = Lanes(lane, np.empty(room), np.empty(room, dtype=np.int32), first, length, least, np.zeros(1, dtype=np.int64))
    return rings, lane_of


@kernel
def _is_before(q: Lanes, at: int, key: float, row: int) -> bool:
    """Whether the job at that place of a ring ranks before (key, row)."""
    return bool(q.key[at] < key or (q.key[at] == key and q.row[at] < row))


@kernel
def first_behind(q: Lanes, lane: int, key: float, row: int) -> int:
    """How many of the lane rank before (key, row)."""
    base, mask, head = q.lane[Lane.BASE, lane], q.lane[Lane.MASK, lane], q.lane[Lane.HEAD, lane]
    low, high = 0, q.lane[Lane.COUNT, lane]
    while low < high:
        middle = (low + high) >> 1
        at = base + ((head + middle) & mask)
        if _is_before(q, at, key, row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def place_in_ring(q: Lanes, lane: int, number: int) -> int:
    """Where the ring keeps the job of that number, counted from the first."""
    return int(q.lane[Lane.BASE, lane] + ((q.lane[Lane.HEAD, lane] + number) & q.lane[Lane.MASK, lane]))


@kernel
def _move(q: Lanes, here: int, there: int, lengths: bool) -> None:
    q.key[there] = q.key[here]
    q.row[there] = q.row[here]
    if lengths:
        q.length[there] = q.length[here]
        q.least[there] = q.least[here]


@kernel
def _shift(q: Lanes, lane: int, first: int, last: int, by: int) -> None:
    """Move the jobs from number `first` to `last` (not included) one place on (by 1) or back (by -1)."""
    base, mask, head = q.lane[Lane.BASE, lane], q.lane[Lane.MASK, lane], q.lane[Lane.HEAD, lane]
    lengths = q.length.shape[0] > 0
    at = first if by < 0 else last - 1
    for _ in range(last - first):
        _move(q, base + ((head + at) & mask), base + ((head + at + by) & mask), lengths)
        at -= by


@kernel
def _mind_the_least(q: Lanes, lane: int, number: int) -> None:
    """The job of that number is new, or those behind it have changed: what is shortest from there on, back to where nothing changes."""
    while number >= 0:
        at, least = place_in_ring(q, lane, number), np.inf
        if number + 1 < q.lane[Lane.COUNT, lane]:
            least = q.least[place_in_ring(q, lane, number + 1)]
        least = min(least, q.length[at])
        if q.least[at] == least:
            break
        q.least[at] = least
        number -= 1


@kernel
def enter(q: Lanes, lane: int, key: float, row: int, length: float) -> None:
    """Put a row where it belongs in its lane."""
    base, mask, head, count = q.lane[Lane.BASE, lane], q.lane[Lane.MASK, lane], q.lane[Lane.HEAD, lane], q.lane[Lane.COUNT, lane]
    lengths = q.length.shape[0] > 0
    number, at = count, base + ((head + count) & mask)
    if count > 0 and _is_before(q, base + ((head + (count >> 1)) & mask), key, row):  # rows after it move on
        while number > 0:
            other = base + ((head + number - 1) & mask)
            if _is_before(q, other, key, row):
                break
            _move(q, other, at, lengths)
            number, at = number - 1, other
    elif count > 0:  # rows before it move up
        head = (head - 1) & mask
        q.lane[Lane.HEAD, lane] = head
        number, at = 0, base + head
        while True:
            other = base + ((head + number + 1) & mask)
            if number == count or not _is_before(q, other, key, row):
                break
            _move(q, other, at, lengths)
            number, at = number + 1, other
    q.key[at] = key
    q.row[at] = row
    q.lane[Lane.COUNT, lane] = count + 1
    if number == 0:
        q.first[lane] = key
    if lengths:
        q.length[at] = length
        q.least[at] = -1.0
        _mind_the_least(q, lane, number)
    q.waiting[0] += 1


@kernel
def _look_first(q: Lanes, lane: int) -> None:
    """Another may be the first of the lane now."""
    q.first[lane] = q.key[q.lane[Lane.BASE, lane] + q.lane[Lane.HEAD, lane]] if q.lane[Lane.COUNT, lane] > 0 else np.inf


@kernel
def leave(q: Lanes, lane: int) -> None:
    """Take the first of the lane out."""
    q.lane[Lane.HEAD, lane] = (q.lane[Lane.HEAD, lane] + 1) & q.lane[Lane.MASK, lane]
    q.lane[Lane.COUNT, lane] -= 1
    q.waiting[0] -= 1
    _look_first(q, lane)


@kernel
def remove(q: Lanes, lane: int, key: float, row: int) -> None:
    """Take a row out of its lane, wherever it is."""
    number, count = first_behind(q, lane, key, row), q.lane[Lane.COUNT, lane]
    if number < count - number:
        _shift(q, lane, 0, number, 1)
        q.lane[Lane.HEAD, lane] = (q.lane[Lane.HEAD, lane] + 1) & q.lane[Lane.MASK, lane]
    else:
        _shift(q, lane, number + 1, count, -1)
    q.lane[Lane.COUNT, lane] = count - 1
    q.waiting[0] -= 1
    _look_first(q, lane)
    if q.length.shape[0] > 0:
        _mind_the_least(q, lane, number - 1)


@kernel
def first_lane(q: Lanes, hope: int, low: int, high: int) -> int:
    """The lane, among gangs of at most `hope` devices and not from `low` to `high`, with the best-ranked first row; -1: none."""
    best, best_key = -1, np.inf
    for lane in range(q.lane.shape[1]):
        size, key = q.lane[Lane.SIZE, lane], q.first[lane]
        if size > hope:
            break
        if key > best_key or low <= size <= high or (key == np.inf and q.lane[Lane.COUNT, lane] == 0):
            continue
        if best < 0 or key < best_key or _first_row(q, lane) < _first_row(q, best):
            best, best_key = lane, key
    return best


@kernel
def _first_row(q: Lanes, lane: int) -> int:
    return int(q.row[q.lane[Lane.BASE, lane] + q.lane[Lane.HEAD, lane]])


@kernel
def key_behind(q: Lanes, key: float, row: int) -> float:
    """The key of the first waiting row that ranks behind (key, row); infinity: none."""
    found = np.inf
    for lane in range(q.lane.shape[1]):
        count = q.lane[Lane.COUNT, lane]
        if q.first[lane] > key:
            found = min(found, q.first[lane])
        elif count > 0 and q.key[place_in_ring(q, lane, count - 1)] >= key:
            number = first_behind(q, lane, key, row)
            if number < count:
                found = min(found, q.key[place_in_ring(q, lane, number)])
    return found


@kernel
def restart(q: Lanes) -> None:
    """All cursors to the first of their lanes."""
    for lane in range(q.lane.shape[1]):
        q.lane[Lane.CURSOR, lane] = 0


@kernel
def next_lane(q: Lanes, hope: int) -> int:
    """The lane, among gangs of at most `hope` devices, of which the job at the cursor ranks before the others'; -1: none is left."""
    best = -1
    best_key, best_row = 0.0, 0
    for lane in range(q.lane.shape[1]):
        if q.lane[Lane.SIZE, lane] > hope:
            break
        if q.lane[Lane.CURSOR, lane] >= q.lane[Lane.COUNT, lane]:
            continue
        at = place_in_ring(q, lane, q.lane[Lane.CURSOR, lane])
        if best < 0 or q.key[at] < best_key or (q.key[at] == best_key and q.row[at] < best_row):
            best, best_key, best_row = lane, q.key[at], q.row[at]
    return best
