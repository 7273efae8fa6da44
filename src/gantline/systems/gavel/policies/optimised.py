"""Policies whose shares solve a program: how it is solved, in how many parts, and what an agnostic one sees."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.policy import param
from gantline.systems.gavel.policies.allocation import Allocation, no_pairs, proportional_throughput
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.policy import ARTIFACT_ORDER, GavelPolicy, PackingPolicy
from gantline.systems.gavel.policies.program import group
from gantline.systems.gavel.policies.solving import Solving

# What a heterogeneity-agnostic policy sees: the same question with the differences between types hidden.
#
# The paper's baselines do not know how fast a job is where. Whether it can run there at all is not speed, so a throughput
# of 0 stays 0; the artifact forgets that too (``keep_zeros=False``).


def unit_speed(instance: Instance, *, keep_zeros: bool = True) -> Instance:
    """Every type is as good as any other: throughput 1 (least attained service counts time only)."""
    return _with_speed(instance, np.ones(len(instance)), keep_zeros)


def mean_speed(instance: Instance) -> Instance:
    """Every type has the job's mean speed on this cluster: what one knows of a job without knowing where it ran."""
    return _with_speed(instance, proportional_throughput(instance), True)


def speed_of(instance: Instance, type: str) -> Instance:
    """Every type has the speed of one: the artifact's agnostic baselines peek at the V100's (its issue 248)."""
    if type not in instance.types:
        raise NotFoundError(f"no device type '{type}' in the cluster", fix=near(type, instance.types))
    return _with_speed(instance, instance.throughput[:, instance.types.index(type)], False)


def _with_speed(instance: Instance, speed: Floats, keep_zeros: bool) -> Instance:
    seen = np.repeat(speed[:, None], len(instance.types), axis=1)
    if keep_zeros:
        seen = np.where(instance.throughput > 0, seen, 0.0)
    return replace(instance, throughput=seen, pairs=None)


# POP: split jobs and devices into parts, solve each part for itself, join the answers (POP, SOSP 2021; Gavel's notebooks).
#
# Jobs of one kind are dealt out like cards, so that every part is a small copy of the whole; devices of each type are dealt
# out likewise. A part is solved in a fraction of the time and the result is nearly as good as long as parts stay large.

Policy = Callable[[Instance], Allocation]


def solve_in_parts(instance: Instance, policy: Policy, parts: int) -> Allocation:
    """The joined answer of a policy that is asked about each of the parts; pairs across parts get nothing."""
    if parts < 1:
        raise UsageError(f"{parts} parts", where="parts", fix="give 1 or more")
    share, paired = np.zeros((len(instance), len(instance.types))), no_pairs(instance)
    statuses: list[str] = []
    objectives: list[float] = []
    missing: list[Hashable] = []
    iterations = 0
    part_of = deal_jobs(instance, parts)
    for part, capacity in enumerate(deal_devices(instance.capacity, parts)):
        chosen = np.flatnonzero(part_of == part)
        if not len(chosen):
            continue
        answer = policy(instance.subset(chosen, capacity))
        share[chosen] = answer.share
        if instance.pairs is not None:
            paired[(part_of[instance.pairs.members] == part).all(axis=1)] = answer.paired
        objectives.append(answer.objective)
        missing += answer.missing
        iterations += answer.iterations
        if answer.status != "optimal":
            statuses.append(f"part {part}: {answer.status}")
    worst = min(objectives, default=float("nan"))
    return Allocation(share, paired, worst, "; ".join(statuses) or "optimal", iterations, tuple(missing))


def deal_jobs(instance: Instance, parts: int) -> Ints:
    """The part of every job: jobs of one kind go round the parts, large gangs first, so that demand is even."""
    _, kind = group(np.column_stack((instance.throughput, instance.scale)))
    order = np.lexsort((np.arange(len(instance)), kind, -instance.scale))
    part = np.empty(len(instance), dtype=np.int64)
    part[order] = np.arange(len(instance)) % parts
    return part


def deal_devices(capacity: Floats, parts: int) -> list[Floats]:
    """Whole devices for every part; what is left over goes round, starting where the previous type stopped."""
    dealt = np.tile(np.floor(capacity / parts), (parts, 1))
    turn = 0
    for j, left in enumerate(capacity - dealt.sum(axis=0)):
        while left > 0:
            dealt[turn % parts, j] += min(left, 1.0)
            left -= 1.0
            turn += 1
    return list(dealt)


@dataclass(frozen=True)
class OptimisedPolicy(GavelPolicy):
    """Base of those with a solver."""

    parts: int = field(default=1, metadata=param("solve jobs and devices in so many parts (POP)", low=1))
    budget: int = field(default=100, metadata=param("steps of the interior-point method, then simplex, then isolated shares", low=1))
    tie: str = field(
        default="auto",
        metadata=param(
            "which optimal answer: 'central', 'efficient' (wastes nothing), 'auto': central, in compat as its solver stops",
            one_of=("auto", "central", "efficient"),
        ),
    )

    def solve(self, instance: Instance) -> Allocation:
        """Shares for one question, without memory."""
        raise TypeError(f"policy '{type(self).__name__}' has no solve()")

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return self.in_parts(instance, self.solve), None

    def in_parts(self, instance: Instance, solve: Any) -> Allocation:
        """The answer, solved as a whole or in parts."""
        if self.parts == 1 or len(instance) < 2 * self.parts:
            return cast(Allocation, solve(instance))
        return solve_in_parts(instance, solve, self.parts)

    @property
    def solving(self) -> Solving:
        """How the program is solved: with the artifact's columns and traces of zero, or without."""
        tie: Literal["central", "efficient"] = "efficient" if self.tie == "efficient" else "central"
        return Solving(tie=tie, budget=self.budget, every_column=self.is_artifact, least=0.0 if self.is_artifact else 1e-7)

    def time_only(self, instance: Instance) -> Instance:
        """What a policy sees that counts time and knows no speeds."""
        return instance if self.aware else unit_speed(instance, keep_zeros=not self.is_artifact)

    def one_speed(self, instance: Instance) -> Instance:
        """What a policy sees that knows one speed per job: its mean; the artifact takes that of the V100."""
        if self.aware:
            return instance
        first = next((name for name in ARTIFACT_ORDER if name in instance.types), instance.types[-1])
        return speed_of(instance, first) if self.is_artifact else mean_speed(instance)


@dataclass(frozen=True)
class PackedOptimisedPolicy(OptimisedPolicy, PackingPolicy):
    """Base of those with a solver that pack."""
