"""Max-min fairness, water filling, strategy-proof fairness (Gavel, OSDI 2020, sections 4.1 and 4.3, appendix)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.policy import param
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.systems.gavel.policies.allocation import Allocation, effective_throughput, proportional_throughput
from gantline.systems.gavel.policies.instance import Instance, entities_of, parse_entities
from gantline.systems.gavel.policies.interior import Point
from gantline.systems.gavel.policies.optimised import OptimisedPolicy, PackedOptimisedPolicy
from gantline.systems.gavel.policies.program import Kinds, Program
from gantline.systems.gavel.policies.solving import (
    DEFAULT,
    GIVE,
    Solving,
    as_linear,
    best_level,
    conclude,
    give_up,
    maximise_welfare,
    throughput_of,
)

# Max-min fairness, weighted least attained service (Gavel, OSDI 2020, section 4.1).
#
# Maximise the smallest normalised throughput ``scale / (weight * proportional throughput) * throughput(X)``. Agnostic:
# pass :func:`~gantline.systems.gavel.policies.optimised.unit_speed` of the instance. Packed: pass an instance with pairs; gangs of
# different sizes may be mixed (the constraint is written per job), only gangs of equal size share devices.


def max_min_fairness(instance: Instance, solving: Solving = DEFAULT) -> Allocation:
    """Shares whose smallest normalised throughput is as large as possible; the objective is that throughput."""
    demand = normaliser(instance)
    kinds = solving.kinds(instance, demand)
    program = solving.constraints(instance, kinds)
    point = best_level(program, demand[kinds.first], None, solving)
    return conclude(instance, program, point, point.level, solving)


def normaliser(instance: Instance) -> Floats:
    """Throughput of each job that counts as one."""
    return np.asarray(instance.weight * proportional_throughput(instance) / instance.scale)


# Strategy-proof max-min fairness: Nash welfare with the partial-allocation discount (Gavel, OSDI 2020, appendix).
#
# Shares maximise the product of throughputs (to the power of the weights); then each job gets only the part of its share
# that the others' loss by its presence leaves it: ``prod over others of (with it / without it)``, to the power of one over
# its weight. No job gains by lying about its throughputs (Cole, Gkatzelis, Goel: Mechanism Design for Fair Division, EC
# 2013). One convex problem per kind of job, and one for all.


def strategy_proof(instance: Instance, solving: Solving = DEFAULT) -> tuple[Allocation, Floats]:
    """Discounted shares and the discounts; the objective is the geometric mean of normalised throughputs before them."""
    full, program, point = nash_welfare(instance, solving)
    discount = np.ones(len(instance))
    if not point.solved:
        return full, discount
    kinds = program.kinds
    with_all = _logs(throughput_of(program, point.x)[kinds.of_job])
    for kind, job in enumerate(kinds.first):
        others = np.delete(np.arange(len(instance)), job)
        rest, part, alone = nash_welfare(instance.subset(others), solving)
        if not alone.solved:
            return give_up(instance, f"the discount of job '{instance.jobs[job]}' was not found: {rest.status}"), discount
        without = _logs(throughput_of(part, alone.x)[part.kinds.of_job])
        loss = instance.weight[others] @ (with_all[others] - without)
        discount[kinds.of_job == kind] = min(1.0, float(np.exp(loss / instance.weight[job])))
    scaled = Allocation(full.share * discount[:, None], full.paired, full.objective, full.status, full.iterations)
    return scaled, discount


def nash_welfare(instance: Instance, solving: Solving = DEFAULT) -> tuple[Allocation, Program, Point]:
    """Shares with the largest weighted product of throughputs."""
    instance = instance.without_pairs()
    kinds = solving.kinds(instance, instance.weight)
    program = solving.constraints(instance, kinds)
    weight = (kinds.count * instance.weight[kinds.first]).astype(np.float64)
    point = maximise_welfare(program, weight, budget=solving.budget)
    allocation = conclude(instance, program, point, float("nan"), solving)
    fits = program.reach[kinds.of_job] > 0
    normal = effective_throughput(instance, allocation)[fits] / normaliser(instance)[fits]
    mean = float(np.exp(np.log(normal).mean())) if fits.any() else 0.0
    return Allocation(allocation.share, allocation.paired, mean, allocation.status, allocation.iterations), program, point


def _logs(throughput: Floats) -> Floats:
    """Logarithms; a job that fits nowhere counts for nothing."""
    return np.asarray(np.log(np.where(throughput > 0, throughput, 1.0)))


# Water filling: lexicographic max-min fairness, of jobs or of entities that own jobs (Gavel, OSDI 2020, section 4.3).
#
# Raise the throughput of all jobs together until some can rise no more, freeze those, and go on with the rest. With
# entities the weights are given out anew in every pass: an entity with rule *fairness* divides its weight among its jobs
# that still rise, one with rule *fifo* gives all of it to the first of them. Which can still rise is asked of a mixed-integer
# program, as in the artifact: the largest number of jobs that can all grow by one part in ten thousand.

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


@dataclass(frozen=True)
class MaxMinFairness(OptimisedPolicy):
    """Least attained service: the smallest share of time, by weight, is as large as possible; speeds are not known."""

    name: ClassVar[str] = "gavel.max_min_fairness"
    aware: ClassVar[bool] = False

    def solve(self, instance: Instance) -> Allocation:
        return max_min_fairness(self.time_only(instance), self.solving)


@dataclass(frozen=True)
class MaxMinFairnessPerf(MaxMinFairness):
    """The smallest normalised throughput is as large as possible."""

    name: ClassVar[str] = "gavel.max_min_fairness_perf"
    aware: ClassVar[bool] = True


@dataclass(frozen=True)
class MaxMinFairnessPacked(PackedOptimisedPolicy, MaxMinFairnessPerf):
    """Max-min fairness of normalised throughput, and two jobs may share devices."""

    name: ClassVar[str] = "gavel.max_min_fairness_packed"


@dataclass(frozen=True)
class WaterFilling(OptimisedPolicy):
    """Lexicographic max-min fairness of jobs, or of entities that own jobs; speeds are not known."""

    name: ClassVar[str] = "gavel.max_min_fairness_water_filling"
    aware: ClassVar[bool] = False

    entities: str = field(default="", metadata={"help": "owners with weight and rule: 'research=2:fairness,product=1:fifo'"})
    owner: str = field(default="user", metadata=param("what names a job's entity: user or queue", one_of=("user", "queue")))

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_entities(self.entities)

    def extras(
        self, types: Sequence[str], jobs: Sequence[str], users: Sequence[str], queues: Sequence[str], prices: Mapping[str, float]
    ) -> dict[str, Any]:
        entities = parse_entities(self.entities)
        return entities_of(entities, users if self.owner == "user" else queues, jobs) if entities else {}

    def solve(self, instance: Instance) -> Allocation:
        return water_filling(self.time_only(instance), self.solving)


@dataclass(frozen=True)
class WaterFillingPerf(WaterFilling):
    """Lexicographic max-min fairness of normalised throughput."""

    name: ClassVar[str] = "gavel.max_min_fairness_water_filling_perf"
    aware: ClassVar[bool] = True


@dataclass(frozen=True)
class WaterFillingPacked(WaterFillingPerf, PackedOptimisedPolicy):
    """Lexicographic max-min fairness, and two jobs may share devices."""

    name: ClassVar[str] = "gavel.max_min_fairness_water_filling_packed"


@dataclass(frozen=True)
class StrategyProof(OptimisedPolicy):
    """The largest product of throughputs, each job with the discount that makes lying about speeds useless."""

    name: ClassVar[str] = "gavel.max_min_fairness_strategy_proof"
    paper: ClassVar[str] = "Gavel (OSDI 2020), appendix; Cole, Gkatzelis, Goel: Mechanism Design for Fair Division (EC 2013)"

    def solve(self, instance: Instance) -> Allocation:
        return strategy_proof(instance, self.solving)[0]
