"""What a job needs of servers: CPUs and memory per GPU, and how fast it is with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gantline.models.sensitivity import SensitivityProfile


class Vector(NamedTuple):
    """CPUs and memory per GPU."""

    cpus: float
    memory: float

    def exceeds(self, share: Vector) -> bool:
        return self.cpus > share.cpus or self.memory > share.memory


@dataclass(eq=False)
class Need:
    """A job as the mechanisms see it."""

    row: int
    gpus: int
    demand: Vector
    """Per GPU: what saturates it, cut to one server."""
    gain: float
    """Its speed with that, relative to the proportional share."""
    profile: SensitivityProfile | None


def demand_of(profile: SensitivityProfile, gpus: int, server: tuple[int, float, float]) -> tuple[Vector, float]:
    """Per GPU what the profile of one GPU calls best, with the speed there; no more in all than a server of (GPUs, CPUs, GB) has."""
    seats, most_cpus, most_memory = server
    cpus, memory, gain = profile.best_cpus * gpus, profile.best_memory * gpus, profile.best_speed
    fair_cpus, fair_memory = most_cpus / seats * gpus, most_memory / seats * gpus
    if gpus > seats:  # on several servers it is cut to its share of them, and counts as no faster
        cut = (fair_cpus if cpus > most_cpus else cpus, fair_memory if memory > most_memory else memory)
        return Vector(cut[0] / gpus, cut[1] / gpus), 1.0
    if cpus > most_cpus:
        gain = 1.0 + (gain - 1.0) * (most_cpus - fair_cpus) / (cpus - fair_cpus)
    return Vector(min(cpus, most_cpus) / gpus, min(memory, most_memory) / gpus), gain
