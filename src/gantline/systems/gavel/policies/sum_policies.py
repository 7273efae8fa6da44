"""Total throughput, throughput for money, and deadlines (Gavel, OSDI 2020, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gantline.models.prices import parse_prices, prices_of
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.optimised import OptimisedPolicy, PackedOptimisedPolicy
from gantline.systems.gavel.policies.throughput_sum import max_sum_throughput, max_throughput_per_cost


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
