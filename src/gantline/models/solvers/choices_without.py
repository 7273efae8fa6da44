"""What a program of choices saves without one of its jobs: exactly, or only whether that is less than a limit.

Exactly it takes a relaxation for each job that leaves. Whether it is less than a limit two bounds answer nearly always: prices of the
resources say how much can be saved at most, and the jobs that stay, each with what it has and then what fits, how much at least. Where
they do not, the relaxation and a whole answer near it are closer bounds; only between those a whole program is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import highspy
import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.models.solvers.column_uses import ColumnUses
from gantline.models.solvers.counted_choices import separate_counts
from gantline.models.solvers.multiple_choice import (
    PricedChoices,
    choice_program,
    fill_in_order,
    find_prices,
    is_whole,
    round_choices,
    solve_choices,
    take,
    usual_price,
)

_NEAR = 1e-9  # bounds are sums in another order: what is nearer to a limit is worked out exactly
_LOOSE = 1e-6  # a relaxation is solved up to a tolerance


def best_without(
    job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, leaving: Sequence[int], limits: Sequence[float] = ()
) -> list[float]:  # fmt: skip
    """The most that can be saved without one job, for each of those that leave; with ``limits``, any number on the same side of its limit.

    Of one relaxation to the next only a bound changes, so the simplex method goes on from the last answer. That is whole nearly always and
    then saves as much as the best one; which of several that save the same it is does not matter here.
    """
    found, program = list[float](), None
    counted = separate_counts(job, use, free, jobs) is not None
    for place, one in enumerate(leaving):
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
        if not counted and limits:
            most, least = float(saving @ share), round_choices(job[rest], use[rest], saving[rest], share[rest], free, jobs)
            if most < limits[place] - _LOOSE:
                found.append(most)
                continue
            if (whole := float(saving[rest[least]].sum())) >= limits[place] + _NEAR:
                found.append(whole)
                continue
        found.append(float(saving[rest[solve_choices(job[rest], use[rest], saving[rest], free, jobs).columns]].sum()))
    return found


def less_without(
    job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, chosen: Ints, leaving: Sequence[int], limits: Sequence[float]
) -> list[bool]:  # fmt: skip
    """Whether less than a limit can be saved without one job, for each of those that leave; ``chosen`` are the columns of an answer."""
    if not leaving:
        return []
    bounds, limit = np.empty((2, len(leaving))), np.array(limits, dtype=np.float64)
    room, prices = _Room.of(jobs, len(free), saving), PricedChoices.of(usual_price(use, saving), len(free), jobs)
    _bounds(np.array(leaving, dtype=np.int64), limit, job, ColumnUses.of(use), saving, free, chosen, room, prices, bounds)
    low, high = bounds
    found = high < limit - _NEAR
    open_ = np.flatnonzero(~found & (low < limit + _NEAR)).tolist()
    values = best_without(job, use, saving, free, jobs, [leaving[k] for k in open_], [limits[k] for k in open_])
    for k, value in zip(open_, values):
        found[k] = value < limit[k]
    answer: list[bool] = found.tolist()
    return answer


class _Room(NamedTuple):
    """Where bounds are worked out."""

    order: Ints  # columns that save most first
    left: Floats
    saving: Floats  # of the columns that stay
    staying: Ints  # those columns
    has: Ints

    @staticmethod
    def of(jobs: int, resources: int, saving: Floats) -> _Room:
        order = np.argsort(-saving, kind="stable")
        return _Room(order, np.empty(resources), np.empty(len(saving)), np.empty_like(order), np.empty(jobs, dtype=np.int64))


@kernel
def _bounds(
    leaving: Ints, limit: Floats, job: Ints, uses: ColumnUses, saving: Floats, free: Floats, chosen: Ints, room: _Room,
    prices: PricedChoices, bounds: Floats,
) -> None:  # fmt: skip
    """Fill the lower and the upper bounds of what can be saved without each of those that leave; no upper one above its limit is sought."""
    left, has, low, high = room.left, room.has, bounds[0], bounds[1]
    for place in range(leaving.size):
        one = leaving[place]
        count = 0
        for k in room.order:
            room.saving[k] = 0.0 if job[k] == one else saving[k]  # worth nothing at any price
            if job[k] != one:
                room.staying[count] = k
                count += 1
        for r in range(free.size):
            left[r] = free[r]
        has[:] = -1
        for k in chosen:
            if job[k] != one:
                has[job[k]] = k
                take(uses, k, left, 1.0)
        fill_in_order(room.staying[:count], job, uses, saving, left, has, True)
        low[place], high[place] = 0.0, np.inf
        for k in has:
            low[place] += saving[k] if k >= 0 else 0.0
        if low[place] < limit[place] + _NEAR:
            high[place] = find_prices(job, uses, room.saving, free, prices, limit[place] - _NEAR)  # from the last ones: they differ little
