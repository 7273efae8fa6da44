"""One pass over the ranks of a future: the outcome of `engine.walk` where a gang fits as soon as enough devices are free.

A gang that lost its devices on trial keeps them, or as many others, if enough are free when its turn comes. Which ones does not matter
where starting costs nothing, or where all gangs are of one size; others are not counted but walked by the engine.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.drivers.futures.keys import key_of_running, rank_running
from gantline.engine.drivers.futures.places import (
    ROW_NUMBERS,
    SLOT_NUMBERS,
    SLOT_WHOLES,
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


# --- those that wait: one lane per gang size, in order of (key, row); only the first of a lane leaves it ----------------
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


# --- one gang starts, stops, ends: the twin of `engine.gang`, whose devices are only counted ----------------------------


@kernel
def set_due(room: FutureRoom, at: int) -> None:
    """When the gang, left alone, is done or its estimate proves too low."""
    s = room.s
    due = np.inf
    if s[FutureRow.RATE, at] > 0.0:
        goal = s[FutureRow.WORK, at]
        if s[FutureRow.ESTIMATE, at] < goal and s[FutureRow.ESTIMATE, at] > s[FutureRow.DONE, at]:
            goal = s[FutureRow.ESTIMATE, at]
        due = s[FutureRow.SINCE, at] + (goal - s[FutureRow.DONE, at]) / s[FutureRow.RATE, at]
    s[FutureRow.DUE, at] = due


@kernel
def run_on(room: FutureRoom, row: int, since: float, rate: float, began: float) -> None:
    """One more gang runs, with the numbers of its row."""
    at, s = room.n[FutureCount.RUNNING], room.s
    for number in range(ROW_NUMBERS):
        s[number, at] = room.f[number, row]
    need = room.i[RowWhole.NEED, row]
    s[FutureRow.SINCE, at], s[FutureRow.RATE, at], s[FutureRow.BEGAN, at], s[FutureRow.SIZE, at] = since, rate, began, float(need)
    room.si[Slot.ROW, at], room.si[Slot.NEED, at], room.si[Slot.MARK, at] = row, need, Mark.KEEPS
    set_due(room, at)
    room.n[FutureCount.RUNNING] = at + 1
    room.t[FutureTime.HIGHEST] = max(room.t[FutureTime.HIGHEST], s[FutureRow.KEY, at])
    if s[FutureRow.DUE, at] < room.t[FutureTime.SOONEST]:
        room.t[FutureTime.SOONEST], room.n[FutureCount.FIRST_DUE] = s[FutureRow.DUE, at], at


@kernel
def start(case: FutureCase, room: FutureRoom, row: int, now: float, begins: Floats) -> None:
    """The row gets devices; `begins` notes when each row first did in this future."""
    again = not np.isnan(room.f[FutureRow.FIRST, row])
    if not again:
        room.f[FutureRow.FIRST, row] = now
    if row < begins.shape[0] and now < begins[row]:
        begins[row] = now
    rate = case.rate[row] if row < case.rate.shape[0] else 1.0
    room.n[FutureCount.FREE] -= room.i[RowWhole.NEED, row]
    run_on(room, row, now + case.cost[int(again), room.i[RowWhole.LANE, row]], rate, now)
    room.si[Slot.MARK, room.n[FutureCount.RUNNING] - 1] = Mark.BEGUN


@kernel
def remove(room: FutureRoom, at: int) -> None:
    """Remove the gang; the last one takes its place."""
    last = room.n[FutureCount.RUNNING] - 1
    if at != last:
        for number in range(SLOT_NUMBERS):
            room.s[number, at] = room.s[number, last]
        for number in range(SLOT_WHOLES):
            room.si[number, at] = room.si[number, last]
    room.n[FutureCount.RUNNING] = last


@kernel
def halt(room: FutureRoom, at: int, now: float) -> int:
    """The gang stops with its work saved. Returns its row. Its devices have been taken already."""
    s, row = room.s, room.si[Slot.ROW, at]
    ran = now - s[FutureRow.SINCE, at]
    if ran > 0.0:
        s[FutureRow.DONE, at] += s[FutureRow.RATE, at] * ran
        s[FutureRow.SERVICE, at] += ran
        s[FutureRow.GPUTIME, at] += s[FutureRow.SIZE, at] * ran
    for number in range(ROW_NUMBERS):
        room.f[number, row] = s[number, at]
    remove(room, at)
    return int(row)


@kernel
def find_soonest(room: FutureRoom) -> None:
    """Which gang is due first, and when."""
    due, soonest, first = room.s[FutureRow.DUE], np.inf, 0
    for at in range(room.n[FutureCount.RUNNING]):
        if due[at] < soonest:
            soonest, first = due[at], at
    room.t[FutureTime.SOONEST], room.n[FutureCount.FIRST_DUE] = soonest, first


@kernel
def finish_due(case: FutureCase, room: FutureRoom, now: float, ends: Floats) -> None:
    """End every gang that has done its work by `now`, and raise estimates that turned out too low."""
    s = room.s
    while room.t[FutureTime.SOONEST] <= now:
        at = room.n[FutureCount.FIRST_DUE]
        end = s[FutureRow.SINCE, at] + (s[FutureRow.WORK, at] - s[FutureRow.DONE, at]) / s[FutureRow.RATE, at]
        if end <= now:
            row, need = room.si[Slot.ROW, at], room.si[Slot.NEED, at]
            if row < ends.shape[0]:
                ends[row] = now if case.switch[FutureSwitch.BOUNDARY] == 1 else end
                room.n[FutureCount.LEFT] -= 1
            room.n[FutureCount.FREE] += need
            room.n[FutureCount.DEMAND] -= need
            remove(room, at)
        else:  # its estimate was too low. Mean residual life of a heavy tail: as long again
            s[FutureRow.ESTIMATE, at] = 2.0 * (s[FutureRow.DONE, at] + s[FutureRow.RATE, at] * max(0.0, now - s[FutureRow.SINCE, at]))
            room.t[FutureTime.HIGHEST] = max(room.t[FutureTime.HIGHEST], key_of_running(case, room, at, now))
            set_due(room, at)
        find_soonest(room)


# --- the pass -----------------------------------------------------------------------------------------------------------
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
