"""Those that wait: one lane per gang size, in order of (key, row). Only the first of a lane leaves it."""

from __future__ import annotations

import numpy as np

from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.drivers.futures.places import FutureCase, FutureCount, FutureLane, FutureRoom, FutureRow, RowWhole


@kernel
def first_behind(room: FutureRoom, lane: int, key: float, row: int) -> int:
    """The place in the lane of the first that ranks behind (key, row)."""
    low = room.lane[FutureLane.HEAD, lane]
    high = low + room.lane[FutureLane.COUNT, lane]
    while low < high:
        middle = (low + high) // 2
        other = room.queue[lane, middle]
        mark = room.f[FutureRow.KEY, other]
        if mark < key or (mark == key and other < row):
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def enter(room: FutureRoom, row: int) -> None:
    """The row waits, at the place that its key gives it; whichever side is shorter makes room."""
    lane = room.i[RowWhole.LANE, row]
    queue, head, count = room.queue, room.lane[FutureLane.HEAD, lane], room.lane[FutureLane.COUNT, lane]
    at = first_behind(room, lane, room.f[FutureRow.KEY, row], row)
    if head > 0 and (at - head < count // 2 or head + count >= queue.shape[1]):
        for place in range(head, at):
            queue[lane, place - 1] = queue[lane, place]
        queue[lane, at - 1] = row
        room.lane[FutureLane.HEAD, lane] = head - 1
    else:
        place = head + count
        while place > at:
            queue[lane, place] = queue[lane, place - 1]
            place -= 1
        queue[lane, at] = row
    room.lane[FutureLane.COUNT, lane] = count + 1
    room.n[FutureCount.WAITING] += 1


@kernel
def leave(room: FutureRoom, lane: int) -> None:
    """Remove the first of the lane."""
    room.lane[FutureLane.HEAD, lane] += 1
    room.lane[FutureLane.COUNT, lane] -= 1
    room.n[FutureCount.WAITING] -= 1


@kernel
def first_lane(case: FutureCase, room: FutureRoom, below: int) -> int:
    """The lane of gangs smaller than `below` that has the best-ranked first row; as many as there are lanes: none."""
    lanes = case.size.shape[0]
    best, key, row = lanes, np.inf, 0
    for lane in range(lanes):
        if case.size[lane] >= below:
            break
        if room.lane[FutureLane.COUNT, lane] > 0:
            other = room.queue[lane, room.lane[FutureLane.HEAD, lane]]
            mark = room.f[FutureRow.KEY, other]
            if best == lanes or mark < key or (mark == key and other < row):
                best, key, row = lane, mark, other
    return int(best)


@kernel
def key_behind(case: FutureCase, room: FutureRoom, key: float, row: int) -> float:
    """The key of the first that waits and ranks behind (key, row); infinity: none does."""
    found = np.inf
    for lane in range(case.size.shape[0]):
        at = first_behind(room, lane, key, row)
        if at < room.lane[FutureLane.HEAD, lane] + room.lane[FutureLane.COUNT, lane]:
            found = min(found, room.f[FutureRow.KEY, room.queue[lane, at]])
    return float(found)
