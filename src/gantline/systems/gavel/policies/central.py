"""The goals of Gavel's objectives, put to the interior-point method: scaled, and started strictly inside.

Throughput here is per job of a kind. A kind that fits nowhere takes no part in a goal; its share is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.systems.gavel.policies.interior import LinearProblem, Point, climb
from gantline.systems.gavel.policies.program import Program


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
