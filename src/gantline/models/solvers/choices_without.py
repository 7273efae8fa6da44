"""What a program of choices saves without one of its jobs: exactly, or only whether that is less than a limit.

Exactly it takes a relaxation for each job that leaves. Whether it is less than a limit the relaxation and a whole answer near it nearly
always tell; only between those a whole program is solved.
"""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.solvers.multiple_choice import (
    choice_program,
    is_whole,
    round_choices,
    separate_counts,
    solve_choices,
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
    job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, leaving: Sequence[int], limits: Sequence[float]
) -> list[bool]:  # fmt: skip
    """Whether less than a limit can be saved without one job, for each of those that leave."""
    values = best_without(job, use, saving, free, jobs, leaving, limits)
    return [value < limit for value, limit in zip(values, limits)]
