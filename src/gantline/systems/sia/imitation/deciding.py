"""Sia's decision in its own simulator: believed goodputs, the program, one configuration for each job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.systems.sia.imitation.goodputs import Assumptions, GoodputMatrix
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.rounds import SiaGrant
from gantline.systems.sia.policies.configurations import Configurations
from gantline.systems.sia.policies.matrix import costs, normalised, restart_factor
from gantline.systems.sia.policies.program import choose_configurations


@dataclass
class SiaScheduler:
    """Believed goodput to the power p, and the cost of leaving a job idle."""

    columns: Configurations
    p: float = -0.5
    idle: float = 1.1
    assume: Assumptions = field(default_factory=Assumptions)

    def __post_init__(self) -> None:
        self._goodputs = GoodputMatrix(self.columns, self.assume)

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """The configurations that cost least together; a restarting job keeps its own."""
        columns = self.columns
        holds = np.array([-1 if grant is None else columns.find(grant.group, grant.gpus) for grant in held], dtype=np.int64)
        forced = np.array([self._forced(job, int(column)) for job, column in zip(jobs, holds, strict=True)], dtype=np.int64)
        idle = self.idle * np.array([job.asked.weight for job in jobs])
        chosen = choose_configurations(self.costs(now, jobs, holds), columns, idle, forced, exact=True).column
        return [None if k < 0 else SiaGrant(int(columns.group[k]), int(columns.gpus[k])) for k in chosen.tolist()]

    def costs(self, now: float, jobs: Sequence[SiaJob], holds: np.typing.NDArray[np.int64]) -> Floats:
        """The coefficients of the program."""
        goodput, unit = self._goodputs.rows(jobs)
        # a rigid job is spared until it has been served for as long as a restart takes, the others until they are as old
        rigid = np.array([job.asked.kind == "rigid" for job in jobs])
        age = np.array([now - job.asked.submit for job in jobs])
        served = np.array([job.seconds for job in jobs])
        cost = np.array([job.charges.assumed for job in jobs])
        restarts = np.array([job.restarts for job in jobs], dtype=np.int64)
        factor = np.where(rigid & (served < cost), 1.0, restart_factor(age, restarts, cost))
        weight = np.array([job.asked.weight for job in jobs])
        return costs(normalised(goodput, unit), factor, holds, weight, self.p)

    def _forced(self, job: SiaJob, column: int) -> int:
        """The configuration that a job must have: what is reserved for it, or its own while it restarts."""
        if job.asked.reserved is not None:
            kind, gpus = job.asked.reserved
            found = [self.columns.find(k, gpus) for k, one in enumerate(self.columns.classes) if one.type == kind]
            return max(found, default=-1)
        return column if column >= 0 and job.delay > 0.0 else -1

    def next_change(self, now: float) -> float:
        """Decisions may change every round: costs of restarts fall with time."""
        return now if self.columns else math.inf
