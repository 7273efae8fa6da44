"""Policies whose shares solve a program: how it is solved, in how many parts, and what an agnostic one sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, cast

from gantline.core.constraints import param
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.blind import mean_speed, speed_of, unit_speed
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.packing import PackingPolicy
from gantline.systems.gavel.policies.partition import solve_in_parts
from gantline.systems.gavel.policies.policy import ARTIFACT_ORDER, GavelPolicy
from gantline.systems.gavel.policies.solving import Solving


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
