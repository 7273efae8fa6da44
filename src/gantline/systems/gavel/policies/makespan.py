"""Makespan: finish all present jobs as early as possible (Gavel, OSDI 2020, section 4.2).

Every job needs ``steps / horizon`` throughput, so the smallest horizon is the inverse of a max-min level: one linear
program. The artifact searches the horizon by bisection and takes whatever answer its last feasible program gave, within
5 % of the optimum. That program has no goal, so what its solver happens to stop at decides how the slack is shared out; ``bisection=True``
walks the same search and stops where the artifact's solver does (with pairs: in the centre of the last feasible set).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from gantline.core.arrays import Floats
from gantline.models.solvers.feasible_point import feasible_point
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.central import maximise_gain
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.program import Program
from gantline.systems.gavel.policies.solving import DEFAULT, Solving, best_level, conclude

SLACK = 1.05  # the artifact stops when the upper end is within 5 % of the lower


def makespan(instance: Instance, solving: Solving = DEFAULT, *, bisection: bool = False) -> Allocation:
    """Shares that finish the last job first; the objective is the horizon in seconds."""
    (steps,) = instance.needing("steps")
    if bisection:
        solving = replace(solving, by_kinds=False)  # where that solver stops depends on how many rows there are
    kinds = solving.kinds(instance, steps)
    program = solving.constraints(instance, kinds)
    needed = steps[kinds.first]
    point = best_level(program, needed, None, solving)
    horizon = 1.0 / point.level if point.level > 0 else float("inf")
    if bisection and point.solved and np.isfinite(horizon) and len(program.row):
        horizon = last_feasible_probe(horizon)
        found = None if len(kinds.pair_first) else feasible_point(*_within(program, needed / horizon), solving.budget)
        if found is None:
            point = maximise_gain(program, np.zeros(len(program.row)), needed / horizon, budget=solving.budget)
        else:
            point = replace(point, x=found)
    return conclude(instance, program, point, horizon, solving)


def _within(program: Program, floor: Floats) -> tuple[sparse.csc_array, Floats]:
    """Shares that are not negative, keep every limit and give each job its floor, as ``G x <= h``."""
    columns, bound = len(program.row), program.bound.copy()
    bound[1 : 2 * program.size : 2] = -floor
    limits = sparse.csc_array((program.value, program.index, program.start), shape=(len(bound), columns))
    return sparse.csc_array(sparse.vstack([-sparse.eye_array(columns), limits])), np.concatenate((np.zeros(columns), bound))


def last_feasible_probe(shortest: float, low: float = 100.0, high: float = 1e6) -> float:
    """The last horizon that the artifact's search finds feasible when the true optimum is ``shortest``."""
    while True:
        found, floor, top = None, low, high
        while top > SLACK * floor:
            middle = (floor + top) / 2.0
            if middle >= shortest:
                found = top = middle
            else:
                floor = middle
        if found is not None:
            return found
        low, high = high, 10.0 * high
