"""How a program is solved, and how a solver's point becomes an allocation that keeps every limit.

* ``central``: the analytic centre of the optimal answers. Unique, symmetric, what the artifact's solver approximates.
* ``efficient``: among the optimal answers a vertex with the largest sum of throughputs, each measured in what the job
  has under the first goal. No job can get more without another getting less (Pareto efficiency).

If the interior-point method runs out of its budget, simplex is asked; if that fails too, the isolated shares are
returned. The allocation's status says so in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import sparse

from gantline.core.arrays import Floats
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.central import maximise_level, throughput_of
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.interior import Point
from gantline.systems.gavel.policies.kinds import Kinds, apart, kinds
from gantline.systems.gavel.policies.program import Program, constraints
from gantline.systems.gavel.policies.shares import isolated

GIVE = 1e-7  # how much of a floor rounding may take; it also leaves floors that bind an inside to walk through


@dataclass(frozen=True, slots=True)
class Solving:
    """Parameters of a solve; the defaults are what the paper means, fast and independent of history."""

    tie: Literal["central", "efficient"] = "central"
    by_kinds: bool = True
    every_column: bool = False  # keep columns that bring nothing, as the artifact does
    least: float = 1e-7  # a smaller share is what a barrier leaves of zero
    budget: int = 100  # steps of the interior-point method
    pivots: int = 100_000  # of simplex, where it is asked

    def kinds(self, instance: Instance, *columns: Floats) -> Kinds:
        """Kinds of jobs, or every job for itself."""
        return kinds(instance, *columns) if self.by_kinds else apart(instance)

    def constraints(self, instance: Instance, kinds: Kinds) -> Program:
        """The limits of the instance over these kinds."""
        return constraints(instance, kinds, every_column=self.every_column)


DEFAULT = Solving()
# The artifact's solver leaves about 1e-10 of everything, and that orders the jobs which fill idle devices.
ARTIFACT = Solving(every_column=True, least=0.0)


def conclude(instance: Instance, program: Program, point: Point, objective: float, solving: Solving) -> Allocation:
    """The allocation of a point at which the first goal is met."""
    if not point.solved:
        return give_up(instance, f"the solver stopped after {point.iterations} steps, {point.gap:.1e} from an optimum")
    x, iterations = point.x, point.iterations
    if solving.tie == "efficient":
        have = throughput_of(program, x)
        worth = np.where(have > 0, program.kinds.count / np.where(have > 0, have, 1.0), 0.0)
        better = solve(as_linear(program, gain_of(program, worth), have * (1.0 - GIVE)), budget=solving.pivots)
        if better.status == "optimal":
            x, iterations = better.x, iterations + better.iterations
    return Allocation(*program.spread(within(program, x, solving.least)), objective, iterations=iterations)


def give_up(instance: Instance, why: str) -> Allocation:
    """The stated fallback: every job gets its isolated share."""
    fallback = isolated(instance)
    return Allocation(fallback.share, fallback.paired, float("nan"), f"isolated shares, because {why}")


def within(program: Program, x: Floats, least: float) -> Floats:
    """The same shares without noise, shrunk by the last digits that break a limit."""
    x = np.where(x < least, 0.0, np.minimum(x, 1.0))
    used = np.bincount(program.index, weights=program.value * x[program.column], minlength=len(program.bound))
    limited = program.bound > 0
    return np.asarray(x / max(1.0, float((used[limited] / program.bound[limited]).max(initial=0.0))))


def alike(program: Program, x: Floats, same: Kinds) -> Floats:
    """Columns of jobs that nothing but the solver's rounding tells apart, made equal."""
    group = same.of_job[program.row] * program.types + program.type
    return np.asarray((np.bincount(group, weights=x) / np.maximum(np.bincount(group), 1))[group])


def gain_of(program: Program, worth: Floats) -> Floats:
    """Gain of every column when a unit of throughput of a job is worth that much (per kind)."""
    price = np.zeros(len(program.bound))
    price[1 : 2 * program.size : 2] = -worth
    weighed = program.value * price[program.index]
    return np.asarray(np.bincount(program.column, weights=weighed, minlength=len(program.row)))


def as_linear(program: Program, gain: Floats, floor: Floats) -> LinearProgram:
    """The program for HiGHS: maximise the gain with at least this throughput for each kind (0: no floor)."""
    upper = program.bound.copy()
    upper[1 : 2 * program.size : 2] = np.where(floor > 0, -floor, np.inf)
    unit = np.ones(len(upper))  # floors in units of themselves, so that the solver's tolerance is relative
    unit[1 : 2 * program.size : 2] = np.where(floor > 0, floor, 1.0)
    matrix = sparse.csc_array((program.value / unit[program.index], program.index, program.start), shape=(len(upper), len(program.row)))
    columns = len(program.row)
    return LinearProgram(gain, matrix, np.full(len(upper), -np.inf), upper / unit, np.zeros(columns), np.full(columns, np.inf))


def best_level(program: Program, demand: Floats, base: Floats | None, solving: Solving) -> Point:
    """The largest level with throughput >= demand * level + base; simplex gives the second opinion."""
    point = maximise_level(program, demand, base, budget=solving.budget)
    if point.solved:
        return point
    found = solve(level_program(program, demand, np.zeros(len(demand)) if base is None else base), budget=solving.pivots)
    if found.status != "optimal":
        return point
    return replace(point, x=found.x[:-1], level=found.objective, gap=0.0, iterations=point.iterations + found.iterations)


def level_program(program: Program, demand: Floats, base: Floats) -> LinearProgram:
    """The same for HiGHS: the level is the last column."""
    unit = np.where(program.reach > 0, program.reach, 1.0)
    asked = (program.reach > 0) & ((demand > 0) | (base > 0))
    plain = as_linear(program, np.zeros(len(program.row)), np.where(asked, unit, 0.0))
    floors = slice(1, 2 * program.size, 2)
    upper, level = plain.upper.copy(), np.zeros((len(plain.upper), 1))
    upper[floors] = np.where(asked, -base * (1.0 - GIVE) / unit, np.inf)
    level[floors, 0] = np.where(asked, demand, 0.0) / unit
    columns = len(program.row) + 1
    return LinearProgram(
        np.append(np.zeros(columns - 1), 1.0),
        sparse.csc_array(sparse.hstack((plain.matrix, sparse.csc_array(level)))),
        plain.lower,
        upper,
        np.zeros(columns),
        np.full(columns, np.inf),
    )
