"""GAIA's jobs in ticks, and its loop over them: start what is ready, or what reserved machines are free for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.jit import kernel
from gantline.traces.trace import Trace

# The jobs of a trace in GAIA's units: ticks of five seconds, everything cut to whole ticks.


TICK = 5.0
HOUR = 720
"""Ticks in an hour."""
SPAN = 720 * HOUR
"""The thirty days that a run lasts at most."""
TWO_HOURS = 7200.0
SHORTEST = 300.0


@dataclass(frozen=True)
class GaiaJobs:
    """A row per job, in the order of the trace, which is that of arrival."""

    arrival: Ints
    length: Ints
    cpus: Ints
    brief: np.ndarray[tuple[int], np.dtype[np.bool_]]  # at most two hours: what a spot machine may run
    seconds: Floats

    @staticmethod
    def of(trace: Trace) -> GaiaJobs:
        frame = trace.frame
        if "cpus" not in frame.columns or frame["cpus"].null_count():
            raise RefusedError(
                "GAIA's jobs ask for CPUs, and this trace does not say how many", where="--regime gaia", fix="add a column cpus"
            )
        seconds, cpus = frame["duration"].to_numpy(), frame["cpus"].to_numpy()
        for wrong, what in (
            (seconds < SHORTEST, "lasts less than 300 s"),
            ((cpus % 1 != 0) | (cpus < 1), "asks for no whole number of CPUs"),
        ):
            if wrong.any():
                job = frame["job"][int(np.flatnonzero(wrong)[0])]
                raise RefusedError(f"job '{job}' {what}, which GAIA's simulator does not take", where="--regime gaia")
        return GaiaJobs(_ticks(frame["arrival"].to_numpy()), _ticks(seconds), cpus.astype(np.int64), seconds <= TWO_HOURS, seconds)


class GaiaQueue(NamedTuple):
    """How long a job may wait, and how long jobs of its kind take, in ticks."""

    patience: int
    usual: int


@dataclass(frozen=True)
class GaiaQueues:
    """Jobs below two hours and the others; `6x24` are the hours that each may wait, one number is for both and knows no usual length."""

    short: GaiaQueue
    long: GaiaQueue

    @staticmethod
    def of(waiting: str, jobs: GaiaJobs) -> GaiaQueues:
        hours = [int(part) * HOUR for part in waiting.split("x")]
        if len(hours) == 1:
            both = GaiaQueue(hours[0], 2)
            return GaiaQueues(both, both)
        return GaiaQueues(
            GaiaQueue(hours[0], _mean_ticks(jobs.seconds[jobs.seconds <= TWO_HOURS])),
            GaiaQueue(hours[1], _mean_ticks(jobs.seconds[jobs.seconds >= TWO_HOURS])),
        )

    def of_length(self, ticks: int) -> GaiaQueue:
        return self.short if ticks < 2 * HOUR else self.long


def _ticks(seconds: Floats) -> Ints:
    return np.asarray(seconds // TICK, dtype=np.int64)


def _mean_ticks(seconds: Floats) -> int:
    return int(seconds.mean() / TICK) if len(seconds) else 0


# GAIA's loop over ticks: start what is ready, or what reserved machines are free for; release machines after the pass.
#
# The original keeps its queue in a binary heap that knows arrivals only, and empties and refills it at every tick. Jobs that arrived in
# the same tick may change places each time, and where reserved machines are short that decides which job gets them. So the heap is
# replayed here push by push and pop by pop, as Python's `heapq` does it, and ticks are skipped only while no two arrivals are equal.

ON_DEMAND, RESERVED, SPOT, NEVER = 0, 1, 2, 3
WAITING, UPCOMING, STARTED, HOLDERS, FREE, NOW = range(6)  # what the loop counts
_REPORTED = SPAN // 100  # ticks from one report to the next, at least


class Pieces(NamedTuple):
    """What is to run, a piece each, in the order of submission."""

    arrival: Ints
    ready: Ints
    ticks: Ints
    cpus: Ints
    brief: Ints  # 1: a spot machine may run it


class PieceStarts(NamedTuple):
    """Per piece its start and what it ran on; and the pieces in the order of their starts."""

    start: Ints
    bought: Ints
    order: Ints


def run_ticks(
    pieces: Pieces, reserved: int, *, work_conserving: bool, spot: bool, on_tick: Callable[[int, int, int], None] | None = None
) -> PieceStarts:
    """The thirty days, or until no piece is left; a piece that had no start by then has NEVER bought anything.

    ``on_tick`` is called now and then: the tick, pieces that have arrived, pieces that wait.
    """
    n = len(pieces.arrival)
    found, scratch = PieceStarts(np.full(n, -1), np.full(n, NEVER), np.full(n, -1)), np.zeros((4, n), dtype=np.int64)
    count = np.zeros(6, dtype=np.int64)
    count[FREE] = reserved
    while count[NOW] < SPAN and (count[UPCOMING] < n or count[WAITING] > 0):
        pause = SPAN if on_tick is None else min(int(count[NOW]) + _REPORTED, SPAN)
        _run(pieces, found, scratch, count, pause, int(work_conserving), int(spot))
        if on_tick is not None:
            on_tick(int(count[NOW]), int(count[UPCOMING]), int(count[WAITING]))
    return found._replace(order=found.order[: count[STARTED]])


@kernel
def _run(pieces: Pieces, found: PieceStarts, scratch: Ints, count: Ints, pause: int, work_conserving: int, spot: int) -> None:
    """Run the ticks before ``pause``."""
    arrival, ready, cpus = pieces.arrival, pieces.ready, pieces.cpus
    start, bought, order = found.start, found.bought, found.order
    heap, queue, ending, returned = scratch[0], scratch[1], scratch[2], scratch[3]  # the last two: when reserved CPUs come back, how many
    n = arrival.size
    waiting, upcoming, started = count[WAITING], count[UPCOMING], count[STARTED]
    holders, free, now = count[HOLDERS], count[FREE], count[NOW]
    while now < pause and (upcoming < n or waiting > 0):
        while upcoming < n and arrival[upcoming] <= now:
            _rise(heap, waiting, upcoming, arrival)
            waiting += 1
            upcoming += 1
        left = 0
        while waiting > 0:
            piece = _pop(heap, waiting, arrival)
            waiting -= 1
            on_spot = spot == 1 and pieces.brief[piece] == 1
            early = work_conserving == 1 and free >= cpus[piece] and not on_spot
            if now >= ready[piece] or early:
                start[piece], order[started] = now, piece
                started += 1
                if on_spot:
                    bought[piece] = SPOT
                elif free >= cpus[piece]:
                    bought[piece] = RESERVED
                    free -= cpus[piece]
                    ending[holders], returned[holders] = now + pieces.ticks[piece], cpus[piece]
                    holders += 1
                else:
                    bought[piece] = ON_DEMAND
            else:
                queue[left] = piece
                left += 1
        equal = False
        for place in range(left):
            _rise(heap, place, queue[place], arrival)
            equal = equal or (place > 0 and arrival[queue[place]] == arrival[queue[place - 1]])
        waiting = left
        came_back = False
        soon = SPAN
        kept = 0
        for holder in range(holders):
            if ending[holder] <= now:
                free += returned[holder]
                came_back = True
            else:
                soon = min(soon, ending[holder])
                ending[kept], returned[kept] = ending[holder], returned[holder]
                kept += 1
        holders = kept
        if came_back or equal:
            now += 1
            continue
        if upcoming < n:
            soon = min(soon, arrival[upcoming])
        for place in range(waiting):
            soon = min(soon, ready[heap[place]])
        now = max(now + 1, soon)
    count[WAITING], count[UPCOMING], count[STARTED] = waiting, upcoming, started
    count[HOLDERS], count[FREE], count[NOW] = holders, free, now


@kernel
def _rise(heap: Ints, place: int, item: int, key: Ints) -> None:
    """Put an item where it belongs between this place and the root: below the first parent that is not later."""
    while place > 0:
        parent = (place - 1) >> 1
        if key[item] >= key[heap[parent]]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


@kernel
def _pop(heap: Ints, size: int, key: Ints) -> int:
    """Take the root; the last item sinks to a leaf along the smaller children (the right one on ties) and rises again."""
    last = heap[size - 1]
    size -= 1
    if size == 0:
        return int(last)
    top = heap[0]
    place, child = 0, 1
    while child < size:
        right = child + 1
        if right < size and not key[heap[child]] < key[heap[right]]:
            child = right
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    _rise(heap, place, last, key)
    return int(top)
