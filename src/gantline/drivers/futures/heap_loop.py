"""A future from an instant to its end where keys only sink while gangs run and nothing comes from outside: `loop`, several times as fast.

Rows that have not run are read from the case, which all futures share; a future keeps numbers of its own only for those that have. What
happens, and every number, is what happens in `loop`, which is the oracle of the tests. Compiled for the processor and for a GPU.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.drivers.futures import heap_room as h
from gantline.drivers.futures import places as p
from gantline.drivers.futures.heap import drop, push, sink
from gantline.drivers.futures.heap_room import HeapRoom
from gantline.drivers.futures.heap_walk import due_of, find_first, heap_walk, key_now, watch
from gantline.drivers.futures.loop import add_up
from gantline.drivers.futures.places import FutureCase
from gantline.engine.instants import next_instant


@kernel
def _begin(case: FutureCase, room: HeapRoom, work: Floats, begins: Floats, ends: Floats) -> None:
    """Everything as it is at the instant, with this much work."""
    own, n = room.own, room.n
    for row in range(begins.shape[0]):
        begins[row] = ends[row] = np.inf
    for number in range(h.COUNTERS):
        n[number] = 0
    n[h.FREE], n[h.LEFT] = case.switch[p.DEVICES], begins.shape[0]
    room.least[0] = np.inf
    for lane in range(case.size.shape[0]):
        room.lane[h.LEFT_QUEUE, lane] = room.lane[h.BACK, lane] = 0
        n[h.WAITING] += case.waits[lane]
        find_first(case, room, lane)
    for place in range(case.running.shape[0]):
        row = case.running[place]
        begins[row] = case.amount[p.START_NOW]
        own[row, h.SINCE], own[row, h.RATE] = case.runs[p.RUN_SINCE, place], case.runs[p.RUN_RATE, place]
        own[row, h.DONE], own[row, h.ESTIMATE] = case.f[p.DONE, row], case.f[p.ESTIMATE, row]
        own[row, h.MARK] = h.KEEPS
        n[h.FREE] -= case.i[p.NEED, row]
        own[row, h.KEY], own[row, h.LISTED] = np.inf, 0.0
        push(room, due_of(case, room, row, work), row)


@kernel
def _finish_due(case: FutureCase, room: HeapRoom, now: float, work: Floats, ends: Floats) -> None:
    """End every gang that has done its work by `now`, and raise estimates that turned out too low."""
    own, n = room.own, room.n
    while n[h.RUNNING] > 0 and room.heap[1, h.DUE] <= now:
        row = int(room.heap[1, h.ROW])
        end = own[row, h.SINCE] + (max(work[row], case.f[p.WORK, row]) - own[row, h.DONE]) / own[row, h.RATE]
        if end <= now:
            ends[row] = now if case.switch[p.BOUNDARY] == 1 else end
            n[h.LEFT] -= 1
            n[h.FREE] += case.i[p.NEED, row]
            own[row, h.MARK] = h.ENDED
            drop(room, 1)
        else:  # its estimate was too low. Mean residual life of a heavy tail: as long again
            done = own[row, h.DONE] + own[row, h.RATE] * max(0.0, now - own[row, h.SINCE])
            own[row, h.ESTIMATE] = 2.0 * done
            own[row, h.KEY] = key_now(case, room, row, now)
            sink(room, 1, due_of(case, room, row, work), float(row))
            watch(room, row)


@kernel
def run_heap_future(case: FutureCase, room: HeapRoom, work: Floats, begins: Floats, ends: Floats) -> int:
    """One future to its end; `begins` and `ends` say when each job first gets devices and when it ends (infinity: it does not)."""
    _begin(case, room, work, begins, ends)
    n, length = room.n, case.amount[p.ROUND]
    at, wake, decided = case.amount[p.START_NOW], case.amount[p.START_NOW], False
    while n[h.LEFT] > 0 and wake < np.inf:
        # 1. the next instant: a finish, or the next round's beginning after it
        now = next_instant(wake, at, length, decided, False)
        if now > case.amount[p.UNTIL]:
            if case.switch[p.BOUNDARY] == 0:
                _finish_due(case, room, case.amount[p.UNTIL], work, ends)
            return p.CUT
        at, decided = now, True
        # 2. what has ended, 3. order and walk
        _finish_due(case, room, now, work, ends)
        if n[h.WAITING] > 0:
            n[h.DECISIONS] += 1
            if n[h.DECISIONS] > p.MOST_DECISIONS:
                return p.GAVE_UP
            heap_walk(case, room, now, work, begins)
        # 4. when to look again
        wake = room.heap[1, h.DUE] if n[h.RUNNING] > 0 else np.inf
    return p.DONE_ALL


@kernel
def run_heap_batch(case: FutureCase, room: HeapRoom, work: Floats, begins: Floats, ends: Floats, sums: Floats, lost: Ints) -> None:
    """A future for each line of `work`; `lost` counts futures that were given up."""
    for future in range(work.shape[0]):
        if run_heap_future(case, room, work[future], begins[future], ends[future]) == p.GAVE_UP:
            lost[0] += 1
        add_up(begins[future], ends[future], sums[future], room.n[h.DECISIONS], room.n[h.STARTED], room.n[h.STOPPED])
