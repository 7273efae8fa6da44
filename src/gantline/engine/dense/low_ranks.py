"""Running gangs, from the lowest rank up, as far as a pass needs them.

The heap of ranks holds every gang by its key, lowest rank on top. Keys that move all alike keep their order, so the heap need not be
touched; each stands by what its key would have been at time zero. Where two come so close that rounding could turn them round, their
exact keys decide. Keys that are whole numbers are never rounded: there the row is part of the number that it stands by, so that no two
are equal and no key is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.dense.heap import FRONT, RANK, Heaps, exchange, mend, pop, push
from gantline.engine.dense.records import Key, Record, Records, key_at


class PassLine(Constants):
    """Rows of `line`: gangs from the lowest rank up, those stopped on trial, those of them that have not had their
    turn (best last), those begun."""

    LOW, VICTIMS, TURNS, BEGUN = range(4)


class PassCount(Constants):
    """Places of `number`: how long each of these lines is, from where on the first may still help, whether its
    search has begun; counted over the run: gangs started and stopped, rows looked at, keys evaluated; where in the
    heap a change of order was found last."""

    AT_LOW, AT_VICTIMS, AT_TURNS, AT_BEGUN, BACK, SEARCHING, STARTED, STOPPED, LOOKED, EVALUATED, CROSSED = range(11)


class Motion(Constants):
    """Places of `motion`: how fast every key rises, whether all must be evaluated anew at every pass, whether any
    can rise; where keys are whole numbers: a power of two above every row, else 0."""

    RISE, ANEW, RISES, WHOLE = range(4)


class Pass(NamedTuple):
    line: Ints  # (what, place)
    number: Ints
    motion: Floats  # see `motion`


@kernel
def rank_key(jobs: Records, row: int, key: Key, work: Pass, now: float) -> float:
    """The row's number in the heap of ranks: its key at time zero if it had always risen as it does, lowest rank on top."""
    work.number[PassCount.EVALUATED] += 1
    return rank_of(row, key_at(jobs, row, key, now), work, now)


@kernel
def rank_of(row: int, mark: float, work: Pass, now: float) -> float:
    """The same for a row with a known key."""
    at_zero = work.motion[Motion.RISE] * now - mark
    return float(at_zero * work.motion[Motion.WHOLE] - row if work.motion[Motion.WHOLE] > 0.0 else at_zero)


@kernel
def search(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> None:
    """Begin to go through the ranks from the low end."""
    work.number[PassCount.SEARCHING] = 1
    if work.motion[Motion.ANEW] == 1.0:
        for place in range(h.size[RANK]):
            h.key[RANK, place] = -key_at(jobs, h.row[RANK, place], key, now)
        work.number[PassCount.EVALUATED] += h.size[RANK]
        mend(h, RANK)
    if h.size[RANK] > 0:
        push(h, h.key[RANK, 0], 0)


@kernel
def _step(h: Heaps) -> int:
    """Which row comes next from the low end; those below it in the heap of ranks may come after it."""
    place = h.row[FRONT, 0]
    child = 2 * place + 1
    if child < h.size[RANK]:
        exchange(h, h.key[RANK, child], child)
        if child + 1 < h.size[RANK]:
            push(h, h.key[RANK, child + 1], child + 1)
    else:
        pop(h)
    return int(h.row[RANK, place])


@kernel
def _extend(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> bool:
    """The next gangs from the low end of the ranks: one, or all that are so close that only their exact keys distinguish them."""
    begin = work.number[PassCount.AT_LOW]
    if h.size[FRONT] == 0:
        return False
    rise, whole = work.motion[Motion.RISE], work.motion[Motion.WHOLE]
    last = h.key[FRONT, 0]
    if whole > 0.0:
        row = _step(h)
        jobs.f[row, Record.KEY] = rise * now - (last + row) / whole
        work.line[PassLine.LOW, begin] = row
        work.number[PassCount.AT_LOW] = begin + 1
        return True
    slack = 0.0 if rise == 0.0 else 1e-6 + 4e-15 * (abs(last) + abs(rise * now))
    end = begin
    while h.size[FRONT] > 0 and h.key[FRONT, 0] <= last + slack:
        last = h.key[FRONT, 0]
        row = _step(h)
        exact = -last if rise == 0.0 else key_at(jobs, row, key, now)
        jobs.f[row, Record.KEY] = exact
        at = end
        while at > begin:
            other = work.line[PassLine.LOW, at - 1]
            if jobs.f[other, Record.KEY] > exact or (jobs.f[other, Record.KEY] == exact and other > row):
                break
            work.line[PassLine.LOW, at] = other
            at -= 1
        work.line[PassLine.LOW, at] = row
        end += 1
        if rise < 0.0 and exact == 0.0:  # nothing is left by its estimate: such keys no longer move
            slack = np.inf
    work.number[PassCount.EVALUATED] += end - begin
    work.number[PassCount.AT_LOW] = end
    return True


@kernel
def behind(jobs: Records, h: Heaps, key: Key, work: Pass, place: int, mark: float, row: int, now: float) -> int:
    """The gang at that place from the low end, if it ranks behind (mark, row); -1: from here on they rank before."""
    work.number[PassCount.LOOKED] += 1
    if place >= work.number[PassCount.AT_LOW] and not _extend(jobs, h, key, work, now):
        return -1
    other = work.line[PassLine.LOW, place]
    if jobs.f[other, Record.KEY] > mark or (jobs.f[other, Record.KEY] == mark and other > row):
        return int(other)
    return -1
