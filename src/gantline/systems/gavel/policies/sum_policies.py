"""Total throughput, throughput for money, and deadlines (Gavel, OSDI 2020, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import UsageError
from gantline.models.prices import parse_prices, prices_of
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.systems.gavel.policies.allocation import Allocation, effective_throughput
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.optimised import OptimisedPolicy, PackedOptimisedPolicy
from gantline.systems.gavel.policies.program import Program, apart
from gantline.systems.gavel.policies.solving import DEFAULT, GIVE, Solving, as_linear, conclude, gain_of, maximise_gain, maximise_level

# Largest total throughput, or throughput per money, with or without deadlines (Gavel, OSDI 2020, section 4.2).
#
# Throughputs are added as they are, in steps per second: jobs with quick steps win, as in the artifact. With deadlines
# every job that has one needs ``steps / seconds left``. If not all can be met, the jobs that will miss theirs are named in
# the allocation and their deadlines are dropped; the rest are kept (the artifact drops all, ``drop="all"``).

NODES = 2_000  # of branch and bound, when it is asked which deadlines to give up


def max_sum_throughput(instance: Instance, solving: Solving = DEFAULT) -> Allocation:
    """Shares with the largest sum of effective throughputs."""
    return _best_sum(instance, np.ones(len(instance.types)), np.zeros(len(instance)), solving)


def max_throughput_per_cost(
    instance: Instance,
    solving: Solving = DEFAULT,
    *,
    deadlines: bool = False,
    drop: Literal["fewest", "all"] = "fewest",
) -> Allocation:
    """Shares with the largest sum of throughput per price; with ``deadlines`` also in time where that is possible."""
    if instance.price is None:
        raise UsageError("prices are not given", where="gavel", fix="pass the price of a device-hour for every type")
    if not deadlines:
        return _best_sum(instance, instance.price, np.zeros(len(instance)), solving)
    steps, left = instance.needing("steps", "deadline")
    required = np.where(np.isfinite(left), steps / np.where(left > 0, left, 1.0), 0.0)
    required[np.isfinite(left) & (left <= 0) & (steps > 0)] = np.inf
    kept = _keepable(instance, required, solving)
    if drop == "all" and not kept.all():
        kept = ~np.isfinite(left)
    allocation = _best_sum(instance, instance.price, np.where(kept, required, 0.0), solving)
    late = effective_throughput(instance, allocation) < required * (1.0 - 1e-5)
    missing = tuple(job for job, misses in zip(instance.jobs, late) if misses)
    return Allocation(allocation.share, allocation.paired, allocation.objective, allocation.status, allocation.iterations, missing)


def _best_sum(instance: Instance, price: Floats, floor: Floats, solving: Solving) -> Allocation:
    kinds = solving.kinds(instance, floor)
    program = solving.constraints(instance, kinds)
    gain = gain_of(program, kinds.count.astype(np.float64)) / price[program.type]
    least = floor[kinds.first] * (1.0 - GIVE)
    point = maximise_gain(program, gain, least if (least > 0).any() else None, budget=solving.budget)
    if not point.solved:
        found = solve(as_linear(program, gain, least), budget=solving.pivots)
        if found.status == "optimal":
            point = type(point)(found.x, found.objective, point.price, 0.0, point.iterations + found.iterations)
    return conclude(instance, program, point, float(gain @ point.x), solving)


def _keepable(instance: Instance, required: Floats, solving: Solving) -> Bools:
    """Which deadlines to keep: all if possible, else as many as branch and bound finds."""
    program = solving.constraints(instance, apart(instance))
    hopeless = required > program.reach
    wanted = np.where(hopeless, 0.0, required)
    if not (wanted > 0).any():
        return np.asarray(~hopeless)
    together = maximise_level(program, wanted, budget=solving.budget)
    if together.solved and together.level >= 1.0 - GIVE:
        return np.asarray(~hopeless)
    found = solve(_choice(program, wanted), "mip", budget=NODES)
    if found.status not in ("optimal", "budget") or not len(found.x):
        return np.asarray(required == 0)
    keeps = found.x[len(program.row) :] > 0.5
    return np.asarray((keeps | (wanted == 0)) & ~hopeless)


def _choice(program: Program, wanted: Floats) -> LinearProgram:
    """Maximise the number of floors that hold: throughput >= wanted * kept, kept in {0, 1}."""
    unit = np.where(wanted > 0, wanted, 0.0)
    plain = as_linear(program, np.zeros(len(program.row)), unit)
    upper = plain.upper.copy()
    floors = 2 * np.arange(program.size) + 1
    upper[floors] = np.where(wanted > 0, 0.0, np.inf)
    keep = sparse.csc_array((np.ones(program.size), (floors, np.arange(program.size))), shape=(len(upper), program.size))
    columns = len(program.row)
    return LinearProgram(
        gain=np.concatenate((np.zeros(columns), wanted > 0)),
        matrix=sparse.csc_array(sparse.hstack((plain.matrix, keep))),
        lower=plain.lower,
        upper=upper,
        low=np.zeros(columns + program.size),
        high=np.concatenate((np.full(columns, np.inf), (wanted > 0).astype(np.float64))),
        whole=np.concatenate((np.zeros(columns), np.ones(program.size))),
    )


@dataclass(frozen=True)
class MaxSumThroughputPerf(OptimisedPolicy):
    """The sum of all jobs' steps per second is as large as possible."""

    name: ClassVar[str] = "gavel.max_sum_throughput_perf"

    def solve(self, instance: Instance) -> Allocation:
        return max_sum_throughput(instance, self.solving)


@dataclass(frozen=True)
class MaxThroughputPerCostPerf(OptimisedPolicy):
    """The sum of steps per second and money is as large as possible."""

    name: ClassVar[str] = "gavel.max_sum_throughput_normalized_by_cost_perf"
    deadlines: ClassVar[bool] = False

    prices: str = field(
        default="", metadata={"help": "money per device-hour of every type: v100=0.74,p100=0.43,k80=0.135 (none: as --prices)"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_prices(self.prices)

    @property
    def leaves_idle(self) -> bool:
        """A device that is not worth its money stays idle; the artifact fills it all the same."""
        return not self.is_artifact

    def extras(
        self, types: Sequence[str], jobs: Sequence[str], users: Sequence[str], queues: Sequence[str], prices: Mapping[str, float]
    ) -> dict[str, Any]:
        known = parse_prices(self.prices) if self.prices else prices
        if not known:  # all types cost the same
            return {"price": [1.0] * len(types)}
        return {"price": prices_of(types, known, f"policy '{self.name}', prices")}

    def solve(self, instance: Instance) -> Allocation:
        return max_throughput_per_cost(instance, self.solving, deadlines=self.deadlines, drop="all" if self.is_artifact else "fewest")


@dataclass(frozen=True)
class MaxThroughputPerCostPerfSLOs(MaxThroughputPerCostPerf):
    """Steps per second and money, with every deadline met as far as that is possible."""

    name: ClassVar[str] = "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs"
    deadlines: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"remaining", "deadlines"})


@dataclass(frozen=True)
class MaxThroughputPerCostPackedSLOs(MaxThroughputPerCostPerfSLOs, PackedOptimisedPolicy):
    """Steps per second and money, with every deadline met as far as that is possible; two jobs may share devices."""

    name: ClassVar[str] = "gavel.max_sum_throughput_normalized_by_cost_packed_SLOs"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining", "deadlines", "pairs"})
