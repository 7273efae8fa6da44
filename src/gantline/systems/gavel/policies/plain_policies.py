"""Policies without a program: queues, fixed shares, AlloX and Gandiva as Gavel defines them (OSDI 2020, section 7.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.constraints import param
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.allox import allox
from gantline.systems.gavel.policies.fifo import fifo, fifo_artifact, fifo_packed, fifo_perf
from gantline.systems.gavel.policies.gandiva import gandiva
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.packing import PackingPolicy
from gantline.systems.gavel.policies.policy import GavelPolicy
from gantline.systems.gavel.policies.shares import isolated, no_pairs, proportional, split


@dataclass(frozen=True)
class GavelFifo(GavelPolicy):
    """First come, first served; a job takes a random type that has room. With compat it promises devices that are not there."""

    name: ClassVar[str] = "gavel.fifo"
    aware: ClassVar[bool] = False
    strict: ClassVar[bool] = True

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return fifo_artifact(instance, memory, seed) if self.is_artifact else fifo(instance, memory, seed)


@dataclass(frozen=True)
class FifoPerf(GavelPolicy):
    """First come, first served; a job takes the fastest type that has room."""

    name: ClassVar[str] = "gavel.fifo_perf"
    strict: ClassVar[bool] = True

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return fifo_perf(instance), None


@dataclass(frozen=True)
class FifoPacked(PackingPolicy):
    """First come, first served, and the head of the queue may join a running job."""

    name: ClassVar[str] = "gavel.fifo_packed"
    strict: ClassVar[bool] = True

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return fifo_packed(instance), None


@dataclass(frozen=True)
class Isolated(GavelPolicy):
    """Every one of m jobs has the m-th part of the cluster."""

    name: ClassVar[str] = "gavel.isolated"
    aware: ClassVar[bool] = False

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return isolated(instance), None


@dataclass(frozen=True)
class GandivaFair(GavelPolicy):
    """Equal shares of time for all jobs, whatever their gangs (the baseline of Shockwave, NSDI 2023)."""

    name: ClassVar[str] = "gavel.gandiva_fair"
    paper: ClassVar[str] = "Chaudhary et al.: Balancing Efficiency and Fairness in Heterogeneous GPU Clusters (EuroSys 2020)"
    aware: ClassVar[bool] = False

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        equal = split(instance.capacity, np.ones(len(instance)), len(instance))
        return Allocation(equal, no_pairs(instance)), None


@dataclass(frozen=True)
class Proportional(GavelPolicy):
    """Every job wants the cluster's mix of types for all of its time; turns are all that limits it."""

    name: ClassVar[str] = "gavel.proportional"
    aware: ClassVar[bool] = False

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return proportional(instance), None


@dataclass(frozen=True)
class GavelAlloX(GavelPolicy):
    """The smallest sum of completion times by matching, for jobs of one device; they run to their end.

    The matching knows no gangs: those get what is left over (the artifact refuses them, and so does compat).
    """

    name: ClassVar[str] = "gavel.allox"
    paper: ClassVar[str] = "AlloX (Le et al., EuroSys 2020) as in Gavel (OSDI 2020)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    alpha: float = field(
        default=1.0, metadata=param("part of the waiting jobs, oldest first, that is matched", above=0.0, high=1.0, unit="a part")
    )

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        single = np.flatnonzero(instance.scale == 1)
        if self.is_artifact or len(single) == len(instance):
            return allox(instance, memory, alpha=self.alpha)
        allocation, memory = allox(instance.subset(single), memory, alpha=self.alpha)
        share = np.zeros((len(instance), len(instance.types)))
        share[single] = allocation.share
        return Allocation(share, no_pairs(instance)), memory


@dataclass(frozen=True)
class GavelGandiva(PackingPolicy):
    """Equal parts for all; when the cluster is full, random pairs share devices while that does not hurt."""

    name: ClassVar[str] = "gavel.gandiva"
    paper: ClassVar[str] = "Gandiva (Xiao et al., OSDI 2018) as in Gavel (OSDI 2020)"

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return gandiva(instance, memory, seed)
