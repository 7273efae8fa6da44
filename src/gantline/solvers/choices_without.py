"""What a program of choices saves without one of its jobs: exactly, or only whether that is less than a limit.

Exactly it takes a relaxation for each job that leaves. Whether it is less than a limit two bounds answer nearly always: prices of the
resources say how much can be saved at most, and the jobs that stay, each with what it has and then what fits, how much at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import highspy
import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.solvers.counted_choices import separate_counts
from gantline.solvers.multiple_choice import choice_program, fill_in_order, find_prices, is_whole, solve_choices

_NEAR = 1e-9  # bounds are sums in another order: what is nearer to a limit is worked out exactly


def best_without(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, leaving: Sequence[int]) -> list[float]:
    """The most that can be saved without one job, for each of those that leave.

    Of one relaxation to the next only a bound changes, so the simplex method goes on from the last answer. That is whole nearly always and
    then saves as much as the best one; which of several that save the same it is does not matter here.
    """
    found, program = list[float](), None
    counted = separate_counts(job, use, free, jobs) is not None
    for one in leaving:
        if not counted:
            if program is None:
                program = choice_program(job, use, saving, free, jobs, whole=False, slack=0.0)
            program.changeRowBounds(one, -highspy.kHighsInf, 0.0)
            program.run()
            program.changeRowBounds(one, -highspy.kHighsInf, 1.0)
            share = np.array(program.getSolution().col_value)
            if is_whole(share):
                found.append(float(saving[share > 0.5].sum()))
                continue
        rest = np.flatnonzero(job != one)
        found.append(float(saving[rest[solve_choices(job[rest], use[rest], saving[rest], free, jobs).columns]].sum()))
    return found


def less_without(
    job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, chosen: Ints, leaving: Sequence[int], limits: Sequence[float]
) -> list[bool]:  # fmt: skip
    """Whether less than a limit can be saved without one job, for each of those that leave; ``chosen`` are the columns of an answer."""
    if not leaving:
        return []
    bounds = np.empty((2, len(leaving)))
    order = np.argsort(-saving, kind="stable")
    first_price = float(np.median(saving / np.maximum(use.sum(axis=1), 1.0)))
    _bounds(np.array(leaving, dtype=np.int64), job, use, saving, free, chosen, order, first_price, _Room.of(jobs, *use.shape), bounds)
    (low, high), limit = bounds, np.array(limits, dtype=np.float64)
    found = high < limit - _NEAR
    open_ = np.flatnonzero(~found & (low < limit + _NEAR)).tolist()
    for k, value in zip(open_, best_without(job, use, saving, free, jobs, [leaving[k] for k in open_])):
        found[k] = value < limit[k]
    answer: list[bool] = found.tolist()
    return answer


class _Room(NamedTuple):
    """Where bounds are worked out."""

    price: Floats
    left: Floats
    saving: Floats  # of the columns that stay
    staying: Ints  # those columns
    worth: Floats
    best: Ints
    has: Ints

    @staticmethod
    def of(jobs: int, columns: int, resources: int) -> _Room:
        staying, best, has = (np.empty(size, dtype=np.int64) for size in (columns, jobs, jobs))
        return _Room(np.empty(resources), np.empty(resources), np.empty(columns), staying, np.empty(jobs), best, has)


@kernel
def _bounds(
    leaving: Ints, job: Ints, use: Floats, saving: Floats, free: Floats, chosen: Ints, order: Ints, first_price: float, room: _Room,
    bounds: Floats,
) -> None:  # fmt: skip
    """Fill the lower and the upper bounds of what can be saved without each of those that leave."""
    price, left, has, low, high = room.price, room.left, room.has, bounds[0], bounds[1]
    for place in range(leaving.size):
        one = leaving[place]
        count = 0
        for k in order:
            room.saving[k] = 0.0 if job[k] == one else saving[k]  # worth nothing at any price
            if job[k] != one:
                room.staying[count] = k
                count += 1
        price[:] = first_price
        find_prices(job, use, room.saving, free, price, room.best, room.worth)
        high[place] = 0.0
        for each in room.worth:
            high[place] += each
        for r in range(free.size):
            high[place] += price[r] * free[r]
            left[r] = free[r]
        has[:] = -1
        for k in chosen:
            if job[k] != one:
                has[job[k]] = k
                for r in range(free.size):
                    left[r] -= use[k, r]
        fill_in_order(room.staying[:count], job, use, saving, left, has, True)
        low[place] = 0.0
        for k in has:
            low[place] += saving[k] if k >= 0 else 0.0
