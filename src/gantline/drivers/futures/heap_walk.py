"""One pass over the ranks, as `walk` makes it, where keys can only sink while gangs run.

A bound on each key is kept from when it was last computed. Gangs with a bound below the keys of all that wait stand behind none of them:
the others are watched, and they are few.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.drivers.futures import heap_room as h
from gantline.drivers.futures import places as p
from gantline.drivers.futures.heap import drop, push
from gantline.drivers.futures.heap_room import HeapRoom
from gantline.drivers.futures.places import FutureCase
from gantline.engine import declared_key as k

_ANY = 1 << 60


@kernel
def key_now(case: FutureCase, room: HeapRoom, row: int, now: float) -> float:
    """The key of a gang that runs, summed as `keys.key_of_running` sums it."""
    w, own = case.weight, room.own
    ran = max(0.0, now - own[row, h.SINCE])
    key = 0.0
    size = float(case.i[p.NEED, row])
    if w[k.ARRIVAL] != 0.0:
        key += w[k.ARRIVAL] * case.f[p.ARRIVAL, row]
    if w[k.REMAINING] != 0.0 or w[k.REMAINING_GPU] != 0.0:
        remaining = max(0.0, own[row, h.ESTIMATE] - (own[row, h.DONE] + own[row, h.RATE] * ran))
        key += w[k.REMAINING] * remaining
        key += w[k.REMAINING_GPU] * (remaining * size)
    if w[k.ESTIMATE] != 0.0:
        key += w[k.ESTIMATE] * own[row, h.ESTIMATE]
    if w[k.GPUS] != 0.0:
        key += w[k.GPUS] * size
    if w[k.PRIORITY] != 0.0:
        key += w[k.PRIORITY] * case.f[p.PRIORITY, row]
    return float(key)


@kernel
def due_of(case: FutureCase, room: HeapRoom, row: int, work: Floats) -> float:
    """When the gang, left alone, is done or its estimate proves too low."""
    own = room.own
    goal = max(work[row], case.f[p.WORK, row])
    if own[row, h.ESTIMATE] < goal and own[row, h.ESTIMATE] > own[row, h.DONE]:
        goal = own[row, h.ESTIMATE]
    return float(own[row, h.SINCE] + (goal - own[row, h.DONE]) / own[row, h.RATE])


@kernel
def find_first(case: FutureCase, room: HeapRoom, lane: int) -> None:
    """Note which row of the lane ranks first: of its queue, or of those that have come back."""
    gone, back = room.lane[h.LEFT_QUEUE, lane], room.lane[h.BACK, lane]
    found, key = -1, np.inf
    if gone < case.waits[lane]:
        row = case.queue[lane, gone]
        found, key = 2 * row, case.f[p.KEY, row]
    if back > 0:
        row = room.back[lane, back - 1]
        mark = room.own[row, h.KEY]
        if found < 0 or mark < key or (mark == key and 2 * row < found):
            found, key = 2 * row + 1, mark
    room.lane[h.FIRST, lane], room.first[lane] = found, key


@kernel
def _leave(case: FutureCase, room: HeapRoom, lane: int, now: float, work: Floats, begins: Floats) -> None:
    """The first of the lane gets devices."""
    row, own = room.lane[h.FIRST, lane] >> 1, room.own
    if room.lane[h.FIRST, lane] & 1:
        again = True
        room.lane[h.BACK, lane] -= 1
    else:
        again = not np.isnan(case.f[p.FIRST, row])
        own[row, h.DONE], own[row, h.ESTIMATE], own[row, h.KEY] = case.f[p.DONE, row], case.f[p.ESTIMATE, row], case.f[p.KEY, row]
        room.lane[h.LEFT_QUEUE, lane] += 1
    find_first(case, room, lane)
    own[row, h.SINCE], own[row, h.RATE] = now + case.cost[int(again), lane], case.rate[row]
    own[row, h.MARK], own[row, h.LISTED] = float(room.n[h.DECISIONS]), 0.0
    if now < begins[row]:
        begins[row] = now
    room.n[h.FREE] -= case.i[p.NEED, row]
    room.n[h.WAITING] -= 1
    room.n[h.STARTED] += 1
    push(room, due_of(case, room, row, work), row)
    watch(room, row)


@kernel
def watch(room: HeapRoom, row: int) -> None:
    """Watch a gang that runs if its key may be that of one behind those that wait."""
    if room.own[row, h.KEY] >= room.least[0] and room.own[row, h.LISTED] == 0.0:
        room.own[row, h.LISTED] = 1.0
        room.watched[room.n[h.WATCHED]] = row
        room.n[h.WATCHED] += 1


@kernel
def _watch_no_more(room: HeapRoom, place: int) -> None:
    last = room.n[h.WATCHED] - 1
    room.own[room.watched[place], h.LISTED] = 0.0
    room.watched[place] = room.watched[last]
    room.n[h.WATCHED] = last


@kernel
def _watch_from(room: HeapRoom, key: float) -> None:
    """Watch gangs of lower keys too, from this one on."""
    room.least[0] = key
    for place in range(1, room.n[h.RUNNING] + 1):
        watch(room, int(room.heap[place, h.ROW]))


@kernel
def heap_walk(case: FutureCase, room: HeapRoom, now: float, work: Floats, begins: Floats) -> None:
    """Start and stop gangs as the ranks at this instant say; the steps are those of `walk.walk`."""
    n, lanes = room.n, case.size.shape[0]
    n[h.VICTIMS] = n[h.LOSERS] = 0
    preempt, in_order = case.switch[p.PREEMPT] == 1, case.switch[p.IN_ORDER] == 1
    below = _ANY
    while True:
        hope = below if preempt or in_order else min(below, n[h.FREE] + 1)
        best, first, key = lanes, -1, np.inf
        for lane in range(lanes):
            if case.size[lane] >= hope:
                break
            mark, found = room.first[lane], room.lane[h.FIRST, lane]
            if found >= 0 and (best == lanes or mark < key or (mark == key and found < first)):
                best, first, key = lane, found, mark
        row = first >> 1
        if n[h.VICTIMS] > 0:
            other = room.trial[n[h.VICTIMS] - 1]
            mark = room.own[other, h.KEY]
            if row < 0 or mark < key or (mark == key and other < row):
                n[h.VICTIMS] -= 1
                need = case.i[p.NEED, other]
                if need <= n[h.FREE]:
                    n[h.FREE] -= need
                    room.own[other, h.MARK] = h.KEEPS
                    continue
                room.own[other, h.MARK] = h.LOSES
                room.losers[n[h.LOSERS]] = other
                n[h.LOSERS] += 1
                below = min(below, need)
                if in_order:
                    break
                continue
        if row < 0:
            break
        if preempt and below == _ANY and room.least[0] < key:  # all that ranked before it have started
            room.least[0] = key
        need = case.i[p.NEED, row]
        if need > n[h.FREE] and preempt:
            _make_room(case, room, row, key, need, now)
        if need > n[h.FREE]:
            below = min(below, need)
            if in_order:
                break
            continue
        _leave(case, room, best, now, work, begins)
    while n[h.LOSERS] > 0:
        n[h.LOSERS] -= 1
        _halt(case, room, room.losers[n[h.LOSERS]], now)
    while n[h.VICTIMS] > 0:
        n[h.VICTIMS] -= 1
        _halt(case, room, room.trial[n[h.VICTIMS]], now)


@kernel
def _make_room(case: FutureCase, room: HeapRoom, row: int, key: float, need: int, now: float) -> None:
    """Take devices on trial from gangs that rank behind, the lowest first, if that is enough (Blox: even if not)."""
    n, gain = room.n, 0
    begun = float(n[h.DECISIONS])
    if key < room.least[0]:
        _watch_from(room, key)
    place = 0
    while place < n[h.WATCHED]:
        other = room.watched[place]
        mark, high = room.own[other, h.MARK], room.own[other, h.KEY]
        if high >= key and mark >= 0 and mark != begun:
            high = key_now(case, room, other, now)
            room.own[other, h.KEY] = high
            if high > key or (high == key and other > row):
                gain += case.i[p.NEED, other]
        if mark == h.ENDED or (high < room.least[0] and mark >= 0):
            _watch_no_more(room, place)
        else:
            place += 1
    if gain == 0 or (case.switch[p.KEEP_EVICTIONS] == 0 and n[h.FREE] + gain < need):
        return
    while n[h.FREE] < need:
        best, high = -1, key
        for place in range(n[h.WATCHED]):
            other = room.watched[place]
            mark = room.own[other, h.MARK]
            if mark < 0 or mark == begun or room.own[other, h.KEY] < high:
                continue
            if room.own[other, h.KEY] > high or other > (best if best >= 0 else row):
                best, high = other, room.own[other, h.KEY]
        if best < 0:
            break
        room.own[best, h.MARK] = h.VICTIM
        n[h.FREE] += case.i[p.NEED, best]
        room.trial[n[h.VICTIMS]] = best
        n[h.VICTIMS] += 1


@kernel
def _halt(case: FutureCase, room: HeapRoom, row: int, now: float) -> None:
    """The gang stops with its work saved and waits again. Its devices have been taken already."""
    own, n = room.own, room.n
    ran = now - own[row, h.SINCE]
    if ran > 0.0:
        own[row, h.DONE] += own[row, h.RATE] * ran
    place = 1
    while room.heap[place, h.ROW] != row:
        place += 1
    drop(room, place)
    place = 0
    while room.watched[place] != row:  # it was: whatever stops stood behind one that waited
        place += 1
    _watch_no_more(room, place)
    lane = case.i[p.LANE, row]
    at, key = room.lane[h.BACK, lane], own[row, h.KEY]
    while at > 0:  # those that rank before it stand behind it
        other = room.back[lane, at - 1]
        mark = own[other, h.KEY]
        if mark > key or (mark == key and other > row):
            break
        room.back[lane, at] = other
        at -= 1
    room.back[lane, at] = row
    room.lane[h.BACK, lane] += 1
    find_first(case, room, lane)
    n[h.STOPPED] += 1
    n[h.WAITING] += 1
