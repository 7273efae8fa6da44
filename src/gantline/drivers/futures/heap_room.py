"""What a future keeps where its gangs are in a heap: see `heap_loop`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.drivers.futures import places as p
from gantline.drivers.futures.places import FutureCase, Shapes
from gantline.engine import declared_key as k

# numbers of a row that has run in this future (`own`), in one line of the cache; of one that has not they are the case's. While it runs,
# its key does not exceed KEY; LISTED: whether it is watched
SINCE, RATE, DONE, ESTIMATE, KEY, MARK, LISTED, OWN_NUMBERS = 0, 1, 2, 3, 4, 5, 6, 8
# of a row that has run (MARK): it keeps its devices (from a walk's number on: that walk began it), they are taken on trial, they are lost,
# it has ended
KEEPS, VICTIM, LOSES, ENDED = 0.0, -1.0, -2.0, -3.0
# of a gang in the heap: when it, left alone, is done or its estimate proves too low; its row
DUE, ROW, HEAP_NUMBERS = range(3)
# of a lane (`lane`): rows of its queue that have left, rows that have come back, its first (twice the row, and one if it has come back;
# below zero: none waits)
LEFT_QUEUE, BACK, FIRST, LANE_WHOLES = range(4)
# counters (`n`)
RUNNING, WAITING, FREE, LEFT, DECISIONS, STARTED, STOPPED, VICTIMS, LOSERS, WATCHED, COUNTERS = range(11)


class HeapRoom(NamedTuple):
    """Memory for one future at a time; only what is in use is ever touched, so that it need not be cleared."""

    own: Floats  # (row, number)
    heap: Floats  # (place, number): gangs that run, the one that is due soonest on top, at place 1: then a pair below lies side by side
    watched: Ints  # rows that run and might stand behind one that waits: all with a KEY of `least` or more
    back: Ints  # (lane, place): rows that have stopped, the best rank last
    trial: Ints  # rows that lost their devices on trial, the best rank last
    losers: Ints  # rows that have lost theirs in this walk
    first: Floats  # the key of the first of each lane
    lane: Ints  # (what, lane)
    least: Floats  # (one number)
    n: Ints


def heap_shapes(case: FutureCase) -> tuple[Shapes, Shapes, Shapes]:
    """Shapes of the room: of numbers by row and gang (own, heap), of whole numbers by row and gang, of what is kept by lane."""
    rows, lanes = case.f.shape[1], len(case.size)
    gangs = min(2 * int(case.switch[p.DEVICES]), rows) + 1  # while a walk goes on, those that stop and those that begin
    return ((rows, OWN_NUMBERS), (gangs + 1, HEAP_NUMBERS)), ((rows,), (lanes, rows), (gangs,), (gangs,)), ((lanes,), (LANE_WHOLES, lanes))


def heap_room(case: FutureCase) -> HeapRoom:
    """Room on the processor."""
    numbers, wholes, (first, lane) = heap_shapes(case)
    own, heap = (np.zeros(shape) for shape in numbers)
    watched, back, trial, losers = (np.zeros(shape, dtype=np.int64) for shape in wholes)
    counters = np.zeros(COUNTERS, dtype=np.int64)
    return HeapRoom(own, heap, watched, back, trial, losers, np.zeros(first), np.zeros(lane, dtype=np.int64), np.zeros(1), counters)


def takes_heap(case: FutureCase, newcomers: int) -> bool:
    """Whether the loop over a heap can run this case: keys only sink while gangs run, nothing comes, there is no minimum run."""
    attained = case.weight[[k.ATTAINED, k.ATTAINED_GPU]].any()
    return bool(case.switch[p.SINKS] and not attained and not newcomers and not len(case.held) and case.amount[p.MIN_RUN] <= 0.0)
