"""Sensitivity to CPUs and memory: how fast a network trains by what each of its GPUs is given of them (Synergy, OSDI 2022, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.performance.model import Gangs, PerformanceModel


@dataclass(frozen=True, eq=False)
class SensitivityProfile:
    """One network on one GPU: its speed over CPUs and memory, relative to the proportional share of a server."""

    network: str
    cpus: Floats
    """CPUs per GPU, ascending."""
    memory: Floats
    """GB per GPU, ascending."""
    speed: Floats
    """[CPUs, memory]; 1 at the proportional share."""
    best_cpus: float
    """The least CPUs and memory per GPU at which more of either makes it no faster."""
    best_memory: float
    best_speed: float
    step_time: float
    """Seconds per step at the proportional share."""

    def at(self, cpus: float, memory: float) -> float:
        """The speed with so much of each per GPU: that of the nearest measured point which has no more of either.

        Below the least measured amount the speed falls in proportion.
        """
        if cpus >= self.best_cpus - _NEGLIGIBLE and memory >= self.best_memory - _NEGLIGIBLE:
            return self.best_speed
        row = int(np.searchsorted(self.cpus, cpus + _NEGLIGIBLE, side="right")) - 1
        column = int(np.searchsorted(self.memory, memory + _NEGLIGIBLE, side="right")) - 1
        lacking = min(1.0, cpus / float(self.cpus[0])) * min(1.0, memory / float(self.memory[0]))
        return float(self.speed[max(row, 0), max(column, 0)]) * lacking


_NEGLIGIBLE = 1e-9
Networks = Mapping[str, SensitivityProfile]
PerGpu = tuple[float, float]
"""CPUs and GB per GPU."""


@dataclass(frozen=True, eq=False)
class Sensitivity(PerformanceModel):
    """Jobs are as fast as the CPUs and the memory that they are given make them; a network without a profile is not affected."""

    networks: Mapping[int, Networks]
    """Device type -> the profiles of its servers."""
    share: Mapping[int, PerGpu]
    """Device type -> what belongs to one of its GPUs; a gang has that, unless its plan or its job says otherwise."""
    asked: Mapping[str, PerGpu] = field(default_factory=dict)
    """Job -> what it asks for per GPU; NaN where it says nothing."""

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        speed = np.ones(len(gangs))
        names, kinds, sizes = gangs.models, gangs.type.tolist(), gangs.gpus.tolist()
        for at, (job, name, kind, size) in enumerate(zip(gangs.jobs, names, kinds, sizes)):
            profile = self.networks.get(kind, {}).get(name)
            if profile is None or not size:
                continue
            held, share = gangs.grants[at], self.share[kind]
            given = (math.nan, math.nan) if held is None else (held.assignment.cpus / size, held.assignment.memory / size)
            asked = self.asked.get(job, (math.nan, math.nan))
            cpus, memory = (next(amount for amount in amounts if amount > 0) for amounts in zip(given, asked, share))
            speed[at] = profile.at(cpus, memory)
        return gangs.divided * speed, np.full(len(gangs), np.inf)

    def profile(self, name: str, kind: int) -> SensitivityProfile | None:
        """What is known of a network on a device type; None: nothing."""
        return self.networks.get(kind, {}).get(name)
