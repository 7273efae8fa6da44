"""Max-min fairness, water filling, strategy-proof fairness (Gavel, OSDI 2020, sections 4.1 and 4.3, appendix)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gantline.core.constraints import param
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.entities import entities_of, parse_entities
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.max_min_fairness import max_min_fairness
from gantline.systems.gavel.policies.optimised import OptimisedPolicy, PackedOptimisedPolicy
from gantline.systems.gavel.policies.strategy_proof import strategy_proof
from gantline.systems.gavel.policies.water_filling import water_filling


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
