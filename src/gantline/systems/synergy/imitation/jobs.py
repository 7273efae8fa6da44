"""Synergy's jobs in its simulator: what the trace says of them, what has become of them, and in which order they go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from gantline.models.sensitivity import SensitivityProfile
from gantline.systems.synergy.policies.needs import Need

_PATIENCE = 3_600_000.0
"""A job that has not run for a thousand hours goes before all others."""


class Sku(NamedTuple):
    """A server. Storage is left out: jobs need what is theirs by their GPUs, so that it never binds."""

    gpus: int
    cpus: float
    memory: float


@dataclass(eq=False)
class SynergyJob(Need):
    """A job of the trace, and what has become of it."""

    profile: SensitivityProfile
    _: KW_ONLY
    arrival: float
    steps: float
    done: float = 0.0
    attained: float = 0.0
    speed: float = 1.0
    """Of its last round; `gain` where it did not run. The orders read it before it is set anew."""
    last_ran: float = 0.0
    pace: float = 0.0
    """The speed at which it last ran; 0: it has not."""
    changes: int = 0
    """Of its pace."""

    @property
    def length(self) -> float:
        """Seconds at the proportional share."""
        return self.steps * self.profile.step_time

    @property
    def remaining(self) -> float:
        return (self.steps - self.done) * self.profile.step_time


def by_order(jobs: Sequence[SynergyJob], order: str, now: float, *, proportional: bool, cluster: Sequence[float]) -> list[SynergyJob]:
    """The jobs by an order of the original, ties by arrival; those that have waited too long go first."""

    def left(job: SynergyJob) -> float:
        return job.remaining if proportional else job.remaining / job.speed

    def demand(job: SynergyJob) -> tuple[float, float, float]:
        gpus = job.gpus
        return gpus / cluster[0], job.demand.cpus * gpus / cluster[1], job.demand.memory * gpus / cluster[2]

    keys: dict[str, Callable[[SynergyJob], float]] = {
        "fifo": lambda job: job.arrival,
        "srtf": left,
        "las": lambda job: job.attained,
        "ftf": lambda job: (now - job.arrival + left(job)) / job.length,
        "drf": lambda job: max(demand(job)),
        "tetris": lambda job: sum(demand(job)) * left(job),
    }
    key = keys[order]
    return sorted(jobs, key=lambda job: (now - job.last_ran < _PATIENCE, key(job), job.arrival))
