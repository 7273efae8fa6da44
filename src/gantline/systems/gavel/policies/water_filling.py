"""Water filling: lexicographic max-min fairness, of jobs or of entities that own jobs (Gavel, OSDI 2020, section 4.3).

Raise the throughput of all jobs together until some can rise no more, freeze those, and go on with the rest. With
entities the weights are given out anew in every pass: an entity with rule *fairness* divides its weight among its jobs
that still rise, one with rule *fifo* gives all of it to the first of them. Which can still rise is asked of a mixed-integer
program, as in the artifact: the largest number of jobs that can all grow by one part in ten thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gantline.core.arrays import Bools, Floats, Ints
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.kinds import Kinds
from gantline.systems.gavel.policies.program import Program
from gantline.systems.gavel.policies.shares import proportional_throughput
from gantline.systems.gavel.policies.solving import DEFAULT, GIVE, Solving, as_linear, best_level, conclude, give_up

GROWTH = 1e-4  # a job can still rise if it can grow by this part
SLACKS = (GIVE, 10 * GIVE, 100 * GIVE)  # parts by which floors may be lowered; well below GROWTH
NODES = 2_000


@dataclass(frozen=True, slots=True)
class Water:
    """The state of the filling, per kind."""

    level: Floats  # normalised throughput granted so far
    frozen: Bools


def water_filling(instance: Instance, solving: Solving = DEFAULT) -> Allocation:
    """Shares that no change can improve for a worse-off job; the objective is the level of the first pass."""
    order = _order(instance)
    normal = proportional_throughput(instance)
    owner = np.zeros(len(instance)) if instance.entity is None else instance.entity.astype(np.float64)
    kinds = solving.kinds(instance, normal, instance.weight, owner, order)
    program = solving.constraints(instance, kinds)
    unit, scale = normal[kinds.first], instance.scale[kinds.first]
    water = Water(np.zeros(len(kinds)), program.reach <= 0)
    first, answer, iterations = float("nan"), None, 0
    while not water.frozen.all():
        weight = _weights(instance, kinds, water.frozen)
        rising = weight > 0
        point = best_level(program, np.where(rising, unit * weight / scale, 0.0), unit * water.level * (1.0 - GIVE), solving)
        if not point.solved:
            break
        answer, iterations = point, iterations + point.iterations
        first = point.level if np.isnan(first) else first
        level = water.level + np.where(rising, point.level * weight / scale, 0.0)
        stuck = rising & ~_can_grow(program, unit, level, rising)
        if not stuck.any():
            break
        water = Water(level, water.frozen | stuck)
    if answer is None:
        return give_up(instance, "the first pass of water filling has no answer")
    allocation = conclude(instance, program, answer, first, solving)
    return Allocation(allocation.share, allocation.paired, first, allocation.status, iterations)


def _order(instance: Instance) -> Floats:
    """Jobs of a first-in-first-out entity are distinguished by their place in the queue, all others are not."""
    order = np.zeros(len(instance))
    if instance.entity is not None:
        queued = np.array([entity.rule == "fifo" for entity in instance.entities])[instance.entity]
        order[queued] = 1 + np.flatnonzero(queued)
    return order


def _weights(instance: Instance, kinds: Kinds, frozen: Bools) -> Floats:
    """Weights of the kinds in this pass; 0 for those that do not rise."""
    own = np.where(frozen, 0.0, instance.weight[kinds.first])
    if instance.entity is None:
        return own
    weight = np.zeros(len(kinds))
    owner = instance.entity[kinds.first]
    for e, entity in enumerate(instance.entities):
        rising = np.flatnonzero((owner == e) & ~frozen)
        if not len(rising):
            continue
        if entity.rule == "fifo":
            weight[rising[0]] = entity.weight
        else:
            weight[rising] = entity.weight * own[rising] / (own[rising] @ kinds.count[rising])
    return weight


def _can_grow(program: Program, unit: Floats, level: Floats, rising: Bools) -> Bools:
    """Which of the rising kinds can all grow a little above their level at once.

    Levels are sums of what several passes found, each a little off: floors that rounding has put out of reach are lowered, step by step.
    """
    for slack in SLACKS:
        floor = unit * level * (1.0 - slack)
        asked = np.flatnonzero(rising & (floor > 0))
        grown = _growing(program, floor, asked)
        if grown is not None:
            can = np.array(rising & (floor <= 0))
            can[asked] = grown
            return can
    return np.zeros(len(rising), dtype=bool)


def _growing(program: Program, floor: Floats, asked: Ints) -> Bools | None:
    """The largest set of those asked that can grow together above their floors; None: the floors themselves cannot be kept."""
    plain = as_linear(program, np.zeros(len(program.row)), floor)
    grow = sparse.csc_array((np.full(len(asked), GROWTH), (2 * asked + 1, np.arange(len(asked)))), shape=(len(plain.upper), len(asked)))
    columns = len(program.row)
    found = solve(
        LinearProgram(
            gain=np.concatenate((np.zeros(columns), program.kinds.count[asked])),
            matrix=sparse.csc_array(sparse.hstack((plain.matrix, grow))),
            lower=plain.lower,
            upper=plain.upper,
            low=np.zeros(columns + len(asked)),
            high=np.concatenate((plain.high, np.ones(len(asked)))),
            whole=np.concatenate((np.zeros(columns), np.ones(len(asked)))),
        ),
        "mip",
        budget=NODES,
    )
    return found.x[columns:] > 0.5 if found.status in ("optimal", "budget") else None
