"""Sensitivity to CPUs, memory and storage: how fast networks train by what each GPU has of them (Synergy, OSDI 2022, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.model import Gangs, PerformanceModel
from gantline.models.optimistic_profile import MeasuredEpochs

_NEGLIGIBLE = 1e-9
PerGpu = tuple[float, float, float]
"""CPUs, GB and MB/s of storage per GPU."""
_NOTHING_SAID = (math.nan, math.nan, math.nan)


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
    epochs: MeasuredEpochs | None = None
    """What the grid was computed from; without it, the speed does not depend on storage."""

    @staticmethod
    def computed(epochs: MeasuredEpochs, share: PerGpu) -> SensitivityProfile:
        """The profile of a network on servers with such a share, over the CPUs that were measured and tenths of its data as memory."""
        fair = epochs.epoch(*share)
        cpus = np.unique([*epochs.cpus.tolist(), share[0]])
        memory = np.unique([*(epochs.data * np.arange(1, 11) / 10).tolist(), share[1]])
        speed = np.array([[fair / epochs.epoch(c, m, share[2]) for m in memory.tolist()] for c in cpus.tolist()])
        fastest = speed.max()
        row = int(np.argmax((speed >= fastest - _NEGLIGIBLE).any(axis=1)))
        column = int(np.argmax(speed[row] >= fastest - _NEGLIGIBLE))
        best = (float(cpus[row]), float(memory[column]), float(fastest))
        return SensitivityProfile(epochs.network, cpus, memory, speed, *best, fair / epochs.steps, epochs)

    def at(self, cpus: float, memory: float, storage: float = math.nan, share: PerGpu | None = None) -> float:
        """The speed with so much of each per GPU: that of the nearest measured point which has no more of either.

        Below the least measured amount the speed falls in proportion. Where the network's epochs are known, they are asked.
        """
        if self.epochs is not None and share is not None:
            return self.epochs.epoch(*share) / self.epochs.epoch(cpus, memory, storage)
        if cpus >= self.best_cpus - _NEGLIGIBLE and memory >= self.best_memory - _NEGLIGIBLE:
            return self.best_speed
        row = int(np.searchsorted(self.cpus, cpus + _NEGLIGIBLE, side="right")) - 1
        column = int(np.searchsorted(self.memory, memory + _NEGLIGIBLE, side="right")) - 1
        lacking = min(1.0, cpus / float(self.cpus[0])) * min(1.0, memory / float(self.memory[0]))
        return float(self.speed[max(row, 0), max(column, 0)]) * lacking


Networks = Mapping[str, SensitivityProfile]


@dataclass(frozen=True, eq=False)
class Sensitivity(PerformanceModel):
    """Jobs are as fast as their CPUs, memory and storage bandwidth make them; a network without a profile is not affected."""

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
            plan = None if held is None else held.assignment
            given = _NOTHING_SAID if plan is None else (plan.cpus / size, plan.memory / size, plan.storage / size)
            asked = self.asked.get(job, _NOTHING_SAID)
            cpus, memory, storage = (next((amount for amount in amounts if amount > 0), 0.0) for amounts in zip(given, asked, share))
            speed[at] = profile.at(cpus, memory, storage, share)
        return gangs.divided * speed, np.full(len(gangs), np.inf)

    def profile(self, name: str, kind: int) -> SensitivityProfile | None:
        """What is known of a network on a device type; None: nothing."""
        return self.networks.get(kind, {}).get(name)
