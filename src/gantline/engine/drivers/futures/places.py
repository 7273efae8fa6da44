"""Where the loop over futures keeps what: places in arrays of `FutureCase` (alike in all futures) and `FutureRoom` (of the one at hand)."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants


class FutureRow(Constants):
    """Numbers of a row; `FutureCase.f` holds them as they are at the instant, `FutureRoom.f` as they are in this
    future."""

    (WORK, ESTIMATE, DONE, SERVICE, GPUTIME, FIRST, ARRIVAL, PRIORITY, KEY) = range(9)
    # numbers of a gang that runs (`FutureRoom.s`); the first nine are those of its row
    SINCE, RATE, DUE, BEGAN, SIZE = range(9, 14)


SLOT_NUMBERS = 14


ROW_NUMBERS = 9


class FutureRun(Constants):
    """More numbers of a row that runs at the instant, in `FutureCase.runs`: since when, how fast, when it began."""

    SINCE, RATE, BEGAN = range(3)


class RowWhole(Constants):
    """Whole numbers of a row (`FutureCase.i`, `FutureRoom.i`): devices, lane; of a gang that runs
    (`FutureRoom.si`): row, devices, what a walk has found."""

    NEED, LANE = range(2)


class Slot(Constants):
    """Whole numbers of a gang that runs (`FutureRoom.si`): row, devices, what a walk has found."""

    ROW, NEED, MARK = range(3)


SLOT_WHOLES = 3


class Mark(Constants):
    """Of a gang that runs, during a walk: it keeps its devices, they are taken on trial, they are lost, it has only
    just begun."""

    KEEPS, VICTIM, LOSES, BEGUN = range(4)


class FutureLane(Constants):
    """Of a lane (`FutureRoom.lane`): place of its first, how many wait in it."""

    HEAD, COUNT = range(2)


class FutureCount(Constants):
    """Counters (`FutureRoom.n`)."""

    (RUNNING, WAITING, FREE, NEXT, HELD, DEMAND, LEFT, DECISIONS, ADMITTED) = range(9)
    # of a walk: whether keys of gangs that run are known, how many ran when it began, how many of them stand in the heap of low ranks
    # (below zero: it is not made yet), how many are on trial, how many have been; and the gang that is due first
    RANKED, OLD, LOW, VICTIMS, TAKEN, FIRST_DUE = range(9, 15)


COUNTERS = 15


class FutureTime(Constants):
    """The clock (`FutureRoom.t`) SOONEST: when the gang that is due first is due; LOWEST: the key of the lowest
    rank that runs HIGHEST: a number that no key of a gang that runs exceeds (infinity: none is known)."""

    NOW, WAKE, LAST_DECISION, SOONEST, LOWEST, HIGHEST = range(6)


class FutureAmount(Constants):
    """Seconds and bounds that hold in all futures (`FutureCase.amount`)."""

    START_NOW, ROUND, QUANTUM, UNTIL, LOAD_LIMIT, MIN_RUN = range(6)


class FutureSwitch(Constants):
    """Switches that hold in all futures (`FutureCase.switch`) SINKS: while a gang runs, its key can only sink."""

    PREEMPT, IN_ORDER, KEEP_EVICTIONS, BOUNDARY, RISES, DEVICES, SINKS = range(7)


class Newcomer(Constants):
    """What a newcomer brings (`coming`)."""

    ARRIVAL, NEED, WORK, ESTIMATE, PRIORITY = range(5)


MOST_DECISIONS = 2_000_000  # a future that takes more goes nowhere


class FutureCase(NamedTuple):
    """One instant and one order: what all futures begin with."""

    f: Floats  # (number, row)
    i: Ints  # (whole number, row)
    runs: Floats  # (number, place): those that run
    running: Ints  # their rows
    held: Ints  # rows that admission has not let in, in order of arrival
    rate: Floats  # work per second of a row that runs
    size: Ints  # devices of the gangs of each lane, ascending
    cost: Floats  # (first start or resumption, lane): seconds before a gang makes progress
    queue: Ints  # (lane, place): rows that wait, in order
    waits: Ints  # how many in each lane
    weight: Floats  # of the declared key, see `engine.declared_key`
    thresholds: Floats
    amount: Floats
    switch: Ints


class FutureRoom(NamedTuple):
    """Memory for one future at a time."""

    f: Floats  # (number, row)
    i: Ints  # (whole number, row)
    s: Floats  # (number, gang that runs)
    si: Ints  # (whole number, gang that runs)
    queue: Ints  # (lane, place)
    lane: Ints  # (what, lane)
    low: Ints  # gangs that run, the lowest rank on top of a heap
    trial: Ints  # gangs that lost their devices on trial, the best rank last
    n: Ints
    t: Floats


Shapes = tuple[tuple[int, ...], ...]


def room_shapes(case: FutureCase, newcomers: int) -> tuple[Shapes, Shapes]:
    """Shapes of a room with so many newcomers at most: of its numbers (f, s) and of its whole numbers (i, si, queue, lane, low, trial)."""
    rows, lanes = case.f.shape[1] + newcomers, len(case.size)
    gangs = min(2 * int(case.switch[FutureSwitch.DEVICES]), rows) + 1  # while a walk goes on, those that stop and those that begin
    wholes = ((len(RowWhole), rows), (SLOT_WHOLES, gangs), (lanes, rows + 1), (len(FutureLane), lanes), (gangs,), (gangs,))
    return ((ROW_NUMBERS, rows), (SLOT_NUMBERS, gangs)), wholes
