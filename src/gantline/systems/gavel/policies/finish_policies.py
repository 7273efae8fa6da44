"""Finish-time fairness and makespan (Gavel, OSDI 2020, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.finish_time_fairness import FairnessMemory, finish_time_fairness
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.makespan import makespan
from gantline.systems.gavel.policies.optimised import OptimisedPolicy, PackedOptimisedPolicy

REMAINING = frozenset({"remaining"})


@dataclass(frozen=True)
class FinishTimeFairness(OptimisedPolicy):
    """The largest ratio of finish time to that on a part of one's own is as small as possible; one speed per job is known."""

    name: ClassVar[str] = "gavel.finish_time_fairness"
    paper: ClassVar[str] = "Gavel (OSDI 2020); objective of Themis (Mahajan et al., NSDI 2020)"
    aware: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = REMAINING

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        by_weight, stops = self.is_artifact and self.packs, self.is_artifact and self.tie == "auto"
        after = FairnessMemory(isolated_time=[], last=[])

        def solve(part: Instance) -> Allocation:
            allocation, kept = finish_time_fairness(part, memory, self.solving, by_weight=by_weight, stops=stops)
            after["isolated_time"] += kept["isolated_time"]
            after["last"] += kept["last"]
            return allocation

        return self.in_parts(self.one_speed(instance), solve), after


@dataclass(frozen=True)
class FinishTimeFairnessPerf(FinishTimeFairness):
    """Finish-time fairness with the speeds on every type."""

    name: ClassVar[str] = "gavel.finish_time_fairness_perf"
    aware: ClassVar[bool] = True


@dataclass(frozen=True)
class FinishTimeFairnessPacked(PackedOptimisedPolicy, FinishTimeFairnessPerf):
    """Finish-time fairness, and two jobs may share devices."""

    name: ClassVar[str] = "gavel.finish_time_fairness_packed"
    needs: ClassVar[frozenset[str]] = REMAINING | PackedOptimisedPolicy.needs


@dataclass(frozen=True)
class MinTotalDuration(OptimisedPolicy):
    """Makespan: all present jobs finish as early as possible; one speed per job is known."""

    name: ClassVar[str] = "gavel.min_total_duration"
    aware: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = REMAINING

    def solve(self, instance: Instance) -> Allocation:
        return makespan(self.one_speed(instance), self.solving, bisection=self.is_artifact)


@dataclass(frozen=True)
class MinTotalDurationPerf(MinTotalDuration):
    """Makespan with the speeds on every type."""

    name: ClassVar[str] = "gavel.min_total_duration_perf"
    aware: ClassVar[bool] = True


@dataclass(frozen=True)
class MinTotalDurationPacked(PackedOptimisedPolicy, MinTotalDurationPerf):
    """Makespan, and two jobs may share devices."""

    name: ClassVar[str] = "gavel.min_total_duration_packed"
    needs: ClassVar[frozenset[str]] = REMAINING | PackedOptimisedPolicy.needs
