"""What happens to one gang of a future: it starts, stops, ends. The twin of `engine.gang`, without devices of its own: they are counted."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.drivers.futures import places as p
from gantline.engine.drivers.futures.keys import key_of_running
from gantline.engine.drivers.futures.places import FutureCase, FutureRoom


@kernel
def set_due(room: FutureRoom, at: int) -> None:
    """When the gang, left alone, is done or its estimate proves too low."""
    s = room.s
    due = np.inf
    if s[p.RATE, at] > 0.0:
        goal = s[p.WORK, at]
        if s[p.ESTIMATE, at] < goal and s[p.ESTIMATE, at] > s[p.DONE, at]:
            goal = s[p.ESTIMATE, at]
        due = s[p.SINCE, at] + (goal - s[p.DONE, at]) / s[p.RATE, at]
    s[p.DUE, at] = due


@kernel
def run_on(room: FutureRoom, row: int, since: float, rate: float, began: float) -> None:
    """One more gang runs, with the numbers of its row."""
    at, s = room.n[p.RUNNING], room.s
    for number in range(p.ROW_NUMBERS):
        s[number, at] = room.f[number, row]
    need = room.i[p.NEED, row]
    s[p.SINCE, at], s[p.RATE, at], s[p.BEGAN, at], s[p.SIZE, at] = since, rate, began, float(need)
    room.si[p.SLOT_ROW, at], room.si[p.SLOT_NEED, at], room.si[p.MARK, at] = row, need, p.KEEPS
    set_due(room, at)
    room.n[p.RUNNING] = at + 1
    room.t[p.HIGHEST] = max(room.t[p.HIGHEST], s[p.KEY, at])
    if s[p.DUE, at] < room.t[p.SOONEST]:
        room.t[p.SOONEST], room.n[p.FIRST_DUE] = s[p.DUE, at], at


@kernel
def start(case: FutureCase, room: FutureRoom, row: int, now: float, begins: Floats) -> None:
    """The row gets devices; `begins` notes when each row first did in this future."""
    again = not np.isnan(room.f[p.FIRST, row])
    if not again:
        room.f[p.FIRST, row] = now
    if row < begins.shape[0] and now < begins[row]:
        begins[row] = now
    rate = case.rate[row] if row < case.rate.shape[0] else 1.0
    room.n[p.FREE] -= room.i[p.NEED, row]
    run_on(room, row, now + case.cost[int(again), room.i[p.LANE, row]], rate, now)
    room.si[p.MARK, room.n[p.RUNNING] - 1] = p.BEGUN


@kernel
def remove(room: FutureRoom, at: int) -> None:
    """Remove the gang; the last one takes its place."""
    last = room.n[p.RUNNING] - 1
    if at != last:
        for number in range(p.SLOT_NUMBERS):
            room.s[number, at] = room.s[number, last]
        for number in range(p.SLOT_WHOLES):
            room.si[number, at] = room.si[number, last]
    room.n[p.RUNNING] = last


@kernel
def halt(room: FutureRoom, at: int, now: float) -> int:
    """The gang stops with its work saved. Returns its row. Its devices have been taken already."""
    s, row = room.s, room.si[p.SLOT_ROW, at]
    ran = now - s[p.SINCE, at]
    if ran > 0.0:
        s[p.DONE, at] += s[p.RATE, at] * ran
        s[p.SERVICE, at] += ran
        s[p.GPUTIME, at] += s[p.SIZE, at] * ran
    for number in range(p.ROW_NUMBERS):
        room.f[number, row] = s[number, at]
    remove(room, at)
    return int(row)


@kernel
def find_soonest(room: FutureRoom) -> None:
    """Which gang is due first, and when."""
    due, soonest, first = room.s[p.DUE], np.inf, 0
    for at in range(room.n[p.RUNNING]):
        if due[at] < soonest:
            soonest, first = due[at], at
    room.t[p.SOONEST], room.n[p.FIRST_DUE] = soonest, first


@kernel
def finish_due(case: FutureCase, room: FutureRoom, now: float, ends: Floats) -> None:
    """End every gang that has done its work by `now`, and raise estimates that turned out too low."""
    s = room.s
    while room.t[p.SOONEST] <= now:
        at = room.n[p.FIRST_DUE]
        end = s[p.SINCE, at] + (s[p.WORK, at] - s[p.DONE, at]) / s[p.RATE, at]
        if end <= now:
            row, need = room.si[p.SLOT_ROW, at], room.si[p.SLOT_NEED, at]
            if row < ends.shape[0]:
                ends[row] = now if case.switch[p.BOUNDARY] == 1 else end
                room.n[p.LEFT] -= 1
            room.n[p.FREE] += need
            room.n[p.DEMAND] -= need
            remove(room, at)
        else:  # its estimate was too low. Mean residual life of a heavy tail: as long again
            s[p.ESTIMATE, at] = 2.0 * (s[p.DONE, at] + s[p.RATE, at] * max(0.0, now - s[p.SINCE, at]))
            room.t[p.HIGHEST] = max(room.t[p.HIGHEST], key_of_running(case, room, at, now))
            set_due(room, at)
        find_soonest(room)
