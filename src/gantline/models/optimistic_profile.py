"""Optimistic profiling: CPUs are measured, memory and storage are computed (Synergy, OSDI 2022, section 3.1).

With a MinIO cache the hit rate is the part of the data set that is cached, whatever the order of reads, so that the time in which an epoch
can be read follows from memory and bandwidths. An epoch takes as long as computing or reading, whichever is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats

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
