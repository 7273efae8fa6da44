"""One pass over the ranks of a future: the outcome of `engine.walk` where a gang fits as soon as enough devices are free.

A gang that lost its devices on trial keeps them, or as many others, if enough are free when its turn comes. Which ones does not matter
where starting costs nothing, or where all gangs are of one size; others are not counted but walked by the engine.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.drivers.futures.gangs import find_soonest, halt, start
from gantline.engine.drivers.futures.keys import rank_running
from gantline.engine.drivers.futures.lanes import enter, first_lane, leave
from gantline.engine.drivers.futures.places import (
    FutureAmount,
    FutureCase,
    FutureCount,
    FutureLane,
    FutureRoom,
    FutureRow,
    FutureSwitch,
    FutureTime,
    Mark,
    RowWhole,
    Slot,
)

_ANY = 1 << 60
_FEW = 6  # gangs of a walk that are stopped before a heap of ranks is worth its while


@kernel
def walk(case: FutureCase, room: FutureRoom, now: float, begins: Floats) -> None:
    """Start and stop gangs as the ranks at this instant say."""
    n, lanes = room.n, case.size.shape[0]
    n[FutureCount.OLD], n[FutureCount.RANKED], n[FutureCount.LOW], n[FutureCount.VICTIMS] = n[FutureCount.RUNNING], 0, -1, 0
    n[FutureCount.TAKEN] = 0
    preempt, in_order = case.switch[FutureSwitch.PREEMPT] == 1, case.switch[FutureSwitch.IN_ORDER] == 1
    below, lost = _ANY, 0  # gangs of this size or more find nothing; gangs that have lost their devices
    while True:
        hope = below if preempt or in_order else min(below, n[FutureCount.FREE] + 1)
        lane = first_lane(case, room, hope)
        row, key = -1, np.inf
        if lane < lanes:
            row = room.queue[lane, room.lane[FutureLane.HEAD, lane]]
            key = room.f[FutureRow.KEY, row]
        if n[FutureCount.VICTIMS] > 0:
            at = room.trial[n[FutureCount.VICTIMS] - 1]
            mark = room.s[FutureRow.KEY, at]
            if row < 0 or mark < key or (mark == key and room.si[Slot.ROW, at] < row):
                n[FutureCount.VICTIMS] -= 1
                need = room.si[Slot.NEED, at]
                if need <= n[FutureCount.FREE]:
                    n[FutureCount.FREE] -= need
                    room.si[Slot.MARK, at] = Mark.KEEPS
                    continue
                room.si[Slot.MARK, at] = Mark.LOSES
                lost += 1
                below = min(below, need)
                if in_order:
                    break
                continue
        if row < 0:
            break
        need = room.i[RowWhole.NEED, row]
        if need > n[FutureCount.FREE] and preempt:
            _make_room(case, room, row, key, need, now)
        if need > n[FutureCount.FREE]:
            below = min(below, need)
            if in_order:
                break
            continue
        leave(room, lane)
        start(case, room, row, now, begins)
    _afterwards(room, now, lost + n[FutureCount.VICTIMS])


@kernel
def _make_room(case: FutureCase, room: FutureRoom, row: int, key: float, need: int, now: float) -> None:
    """Take devices on trial from gangs that rank behind, the lowest first, if that is enough (Blox: even if not)."""
    if case.switch[FutureSwitch.SINKS] == 1 and key > room.t[FutureTime.HIGHEST]:
        return
    rank_running(case, room, now)
    si, n = room.si, room.n
    if key > room.t[FutureTime.LOWEST]:
        return
    if case.switch[FutureSwitch.KEEP_EVICTIONS] == 0 and n[FutureCount.FREE] + _behind(case, room, row, key, now) < need:
        return
    while n[FutureCount.FREE] < need:
        at = _lowest(case, room, now) if n[FutureCount.TAKEN] < _FEW else _pop(case, room, now)
        if at >= n[FutureCount.OLD] or not _ranks_behind(room, at, row, key):
            break
        si[Slot.MARK, at] = Mark.VICTIM
        n[FutureCount.FREE] += si[Slot.NEED, at]
        room.trial[n[FutureCount.VICTIMS]] = at
        n[FutureCount.VICTIMS] += 1
        n[FutureCount.TAKEN] += 1


@kernel
def _lowest(case: FutureCase, room: FutureRoom, now: float) -> int:
    """The gang of the lowest rank that may be stopped, found by looking at all; as many as there are: none."""
    keys, rows, marks, count = room.s[FutureRow.KEY], room.si[Slot.ROW], room.si[Slot.MARK], room.n[FutureCount.OLD]
    best, key, row = count, -np.inf, 0
    for at in range(count):
        lower = keys[at] >= key and marks[at] == Mark.KEEPS and (keys[at] > key or rows[at] > row or best == count)
        if lower and _movable(case, room, at, now):
            best, key, row = at, keys[at], rows[at]
    return int(best)


@kernel
def _behind(case: FutureCase, room: FutureRoom, row: int, key: float, now: float) -> int:
    """Devices of gangs that rank behind (key, row) and may be stopped."""
    keys, rows, needs, marks = room.s[FutureRow.KEY], room.si[Slot.ROW], room.si[Slot.NEED], room.si[Slot.MARK]
    gain = 0
    if case.amount[FutureAmount.MIN_RUN] <= 0.0:
        for at in range(room.n[FutureCount.OLD]):
            behind = (keys[at] > key) | ((keys[at] == key) & (rows[at] > row))
            gain += needs[at] * int(behind & (marks[at] == Mark.KEEPS))
        return gain
    for at in range(room.n[FutureCount.OLD]):
        if marks[at] == Mark.KEEPS and _ranks_behind(room, at, row, key) and _movable(case, room, at, now):
            gain += needs[at]
    return gain


@kernel
def _movable(case: FutureCase, room: FutureRoom, at: int, now: float) -> bool:
    """Whether the gang has had its minimum run."""
    return bool(case.amount[FutureAmount.MIN_RUN] <= 0.0 or now >= room.s[FutureRow.BEGAN, at] + case.amount[FutureAmount.MIN_RUN])


@kernel
def _ranks_behind(room: FutureRoom, at: int, row: int, key: float) -> bool:
    mark = room.s[FutureRow.KEY, at]
    return bool(mark > key or (mark == key and room.si[Slot.ROW, at] > row))


@kernel
def _heap_up(room: FutureRoom) -> None:
    """All gangs that ran before this walk, the lowest rank on top."""
    count = room.n[FutureCount.OLD]
    room.n[FutureCount.LOW] = count
    for at in range(count):
        room.low[at] = at
    place = count // 2
    while place > 0:
        place -= 1
        _sink(room, place)


@kernel
def _pop(case: FutureCase, room: FutureRoom, now: float) -> int:
    """The same from a heap, which is made when so many are stopped that looking at all each time would take longer."""
    n = room.n
    if n[FutureCount.LOW] < 0:
        _heap_up(room)
    while n[FutureCount.LOW] > 0:
        at = room.low[0]
        if room.si[Slot.MARK, at] == Mark.KEEPS and _movable(case, room, at, now):
            return int(at)
        n[FutureCount.LOW] -= 1
        room.low[0] = room.low[n[FutureCount.LOW]]
        _sink(room, 0)
    return int(n[FutureCount.OLD])


@kernel
def _sink(room: FutureRoom, place: int) -> None:
    low, count = room.low, room.n[FutureCount.LOW]
    if count == 0:
        return
    at = low[place]
    key, row = room.s[FutureRow.KEY, at], room.si[Slot.ROW, at]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and _ranks_behind(room, low[child + 1], room.si[Slot.ROW, low[child]], room.s[FutureRow.KEY, low[child]]):
            child += 1
        if not _ranks_behind(room, low[child], row, key):
            break
        low[place] = low[child]
        place = child
    low[place] = at


@kernel
def _afterwards(room: FutureRoom, now: float, lost: int) -> None:
    """Gangs that have lost their devices wait again; those that began count as the others from now on."""
    for at in range(room.n[FutureCount.OLD], room.n[FutureCount.RUNNING]):
        room.si[Slot.MARK, at] = Mark.KEEPS
    if lost == 0:
        return
    at = room.n[FutureCount.OLD]
    while at > 0:  # from behind: whatever takes the place of one that stops has been looked at
        at -= 1
        mark = room.si[Slot.MARK, at]
        if mark == Mark.VICTIM or mark == Mark.LOSES:
            enter(room, halt(room, at, now))
    find_soonest(room)
