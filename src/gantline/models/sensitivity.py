"""Sensitivity to CPUs, memory and storage (Synergy, OSDI 2022, section 3).

Profiling is optimistic: CPUs are measured, memory and storage are computed. With a MinIO cache the hit rate is the
part of the data set that is cached, whatever the order of reads, so that the time in which an epoch can be read
follows from memory and bandwidths. An epoch takes as long as computing or reading, whichever is slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.model import Gangs, PerformanceModel

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


_SAME = 0.1
"""An epoch that changed by less than this part is taken to be the same."""
_MB = 1000.0
"""MB in a GB."""


@dataclass(frozen=True, eq=False)
class MeasuredEpochs:
    """One network on one GPU: seconds in which it computes an epoch by CPUs, and what it reads meanwhile."""

    network: str
    cpus: Floats
    """CPUs per GPU that were measured, ascending."""
    seconds: Floats
    """Of an epoch whose data are all in memory."""
    data: float
    """GB that an epoch reads."""
    memory_bandwidth: float
    """MB/s from the cache."""
    steps: float
    """Of an epoch."""

    def epoch(self, cpus: float, memory: float, storage: float) -> float:
        """Seconds per epoch with so many CPUs, GB of cache and MB/s of storage per GPU; between two measured points as with fewer CPUs."""
        at = max(int(np.searchsorted(self.cpus, cpus + 1e-9, side="right")) - 1, 0)
        compute = float(self.seconds[at]) * max(1.0, float(self.cpus[0]) / max(cpus, 1e-9))
        cached = min(memory / self.data, 1.0) if self.data else 1.0
        missed = (1.0 - cached) * self.data * _MB
        if missed and storage <= 0:
            return np.inf
        return max(compute, cached * self.data * _MB / self.memory_bandwidth + (missed / storage if missed else 0.0))


def measure_epochs(measure: Callable[[int], float], cpus: int, gpus: int = 1) -> dict[int, float]:
    """Epoch times by CPUs in all, from few runs: `measure` runs an epoch with so many CPUs and all data in memory.

    From all CPUs downwards: halve them while that changes little, then take away one per GPU at a time.
    """
    seconds = {cpus: measure(cpus)}
    now, step_down = cpus, False
    while now > gpus:
        fewer = max(now - gpus if step_down else now // 2, gpus)
        seconds[fewer] = measure(fewer)
        step_down = abs(seconds[fewer] / seconds[now] - 1.0) >= _SAME
        now = fewer
    return seconds
