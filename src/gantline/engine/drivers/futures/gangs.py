"""What happens to one gang of a future: it starts, stops, ends. The twin of `engine.gang`, without devices of its own: they are counted."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.drivers.futures.keys import key_of_running
from gantline.engine.drivers.futures.places import (
    ROW_NUMBERS,
    SLOT_NUMBERS,
    SLOT_WHOLES,
    FutureCase,
    FutureCount,
    FutureRoom,
    FutureRow,
    FutureSwitch,
    FutureTime,
    Mark,
    RowWhole,
    Slot,
)


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
