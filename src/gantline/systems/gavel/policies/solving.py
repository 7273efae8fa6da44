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

from gantline.core.arrays import Bools, Floats
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.systems.gavel.policies.allocation import Allocation, isolated
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.interior import LinearProblem, Point, climb
from gantline.systems.gavel.policies.program import Kinds, Program, apart, constraints, kinds

# The goals of Gavel's objectives, put to the interior-point method: scaled, and started strictly inside.
#
# Throughput here is per job of a kind. A kind that fits nowhere takes no part in a goal; its share is zero.


@dataclass(frozen=True, slots=True)
class Start:
    """A point strictly inside time and device limits, and the throughput of every kind there."""

    x: Floats
    throughput: Floats
    able: Bools


def maximise_level(program: Program, demand: Floats, base: Floats | None = None, *, budget: int = 100) -> Point:
    """The largest level with throughput >= demand * level + base for every kind; demand 0 leaves a kind at its base."""
    start = _start(program)
    wanted = start.able & (demand > 0)
    unit = _smallest(start.throughput[wanted] / demand[wanted])
    num = _on_floors(program, np.where(wanted, demand * unit / start.throughput, 0.0))
    kept = wanted if base is None else wanted | (start.able & (base > 0))
    problem = replace(_problem(program, start, kept, base), num=num)
    point = climb(problem, start.x, 0.5, budget=budget)
    return replace(point, level=point.level * unit)


def minimise_ratio(program: Program, steps: Floats, total: Floats, elapsed: Floats, *, budget: int = 100) -> Point:
    """The smallest rho with (elapsed + steps / throughput) <= rho * total for every kind."""
    start = _start(program)
    wanted = start.able & (steps > 0)
    # In terms of t = 1 / rho the demand is steps * t / (total - elapsed * t), which is linear for a job that just came.
    unit = _smallest(total[wanted] / (elapsed[wanted] + steps[wanted] / start.throughput[wanted]))
    problem = replace(
        _problem(program, start, wanted, None),
        num=_on_floors(program, np.where(wanted, steps / start.throughput * unit, 0.0)),
        den=_on_floors(program, np.where(wanted, total, 1.0), 1.0),
        off=_on_floors(program, np.where(wanted, elapsed * unit, 0.0)),
    )
    point = climb(problem, start.x, 0.5, budget=budget)
    return replace(point, level=1.0 / (point.level * unit))


def maximise_gain(program: Program, gain: Floats, base: Floats | None = None, *, budget: int = 100) -> Point:
    """The columns of largest gain with throughput >= base; a gain of zero everywhere asks for the centre."""
    start = _start(program)
    kept = start.able & (base > 0) if base is not None else np.zeros(program.size, dtype=bool)
    unit = float(np.abs(gain) @ start.x) or 1.0
    problem = replace(_problem(program, start, kept, base), gain=gain / unit)
    point = climb(problem, start.x, budget=budget)
    return replace(point, level=float(gain @ point.x))


def maximise_welfare(program: Program, weight: Floats, *, budget: int = 100) -> Point:
    """The largest sum of weight * log(throughput) (Nash welfare)."""
    start = _start(program)
    floors = 2 * np.flatnonzero(start.able) + 1
    extra = len(floors)
    plain = _problem(program, start, start.able, None)
    problem = replace(
        plain,
        start=np.concatenate((plain.start, plain.start[-1] + 1 + np.arange(extra))),
        index=np.concatenate((plain.index, floors)),
        value=np.concatenate((plain.value, np.ones(extra))),
        column_weight=np.concatenate((plain.column_weight, np.zeros(extra))),
        gain=np.zeros(len(plain.gain) + extra),
        bend=np.concatenate((plain.bend, weight[start.able] / weight.max(initial=1.0))),
        tolerance=1e-12,  # the welfare is flat near its optimum: shares are known to the root of this
    )
    point = climb(problem, np.concatenate((start.x, np.full(extra, 0.5))), budget=budget)
    return replace(point, x=point.x[: len(plain.gain)])


def throughput_of(program: Program, x: Floats) -> Floats:
    """Effective throughput of one job of each kind."""
    used = np.bincount(program.index, weights=program.value * x[program.column], minlength=len(program.bound))
    return np.asarray(-used[1 : 2 * program.size : 2])


def _start(program: Program) -> Start:
    positive = program.value > 0
    total = np.bincount(program.index[positive], weights=program.value[positive], minlength=len(program.bound))
    room = program.bound / np.where(total > 0, total, 1.0)
    x = np.minimum.reduceat(np.where(positive, 0.5 * room[program.index], np.inf), program.start[:-1]) if len(program.row) else np.zeros(0)
    throughput = throughput_of(program, x)
    able = (throughput > 0) & (program.reach > 0)
    return Start(x, np.where(able, throughput, 1.0), able)


def _problem(program: Program, start: Start, kept: Bools, base: Floats | None) -> LinearProblem:
    """The program with every floor row in units of the start's throughput, and only the floors that are kept."""
    unit = np.ones(len(program.bound))
    unit[1 : 2 * program.size : 2] = start.throughput
    bound = program.bound.copy()
    if base is not None:
        bound[1 : 2 * program.size : 2] = -base
    weight = program.row_weight.copy()
    weight[1 : 2 * program.size : 2] *= kept
    return LinearProblem(
        start=program.start,
        index=program.index,
        value=program.value / unit[program.index],
        bound=bound / unit,
        column_weight=program.column_weight,
        row_weight=weight,
        gain=np.zeros(len(program.row)),
        bend=np.zeros(len(program.row)),
        kinds=program.size,
        arrow=not len(program.kinds.pair_first),
    )


def _on_floors(program: Program, values: Floats, others: float = 0.0) -> Floats:
    rows = np.full(len(program.bound), others)
    rows[1 : 2 * program.size : 2] = values
    return rows


def _smallest(values: Floats) -> float:
    return float(values.min()) if len(values) else 1.0


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
