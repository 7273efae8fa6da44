"""Gavel's max-sum-throughput on tuned jobs in the clock of Sia's simulator: shares of time by a linear program, then turns by priority.

Every job keeps the GPUs and the batch of the trace (Sia's "TunedJobs"). The round mechanism is that of Gavel's paper (OSDI 2020, sections 4
and 5): priority is the share that a job should have of a type over the share of its rounds that it has had, the highest goes first, and
idle devices go to jobs that fit. Speeds are measured, and normalised by each job's slowest type. The program is solved by an interior
point method without crossover, as the artifact's solver does, so jobs that are alike have equal shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from gantline.core.arrays import Floats
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.policies.node_classes import NodeClass
from gantline.systems.sia.imitation.goodputs import measured_speed
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.rounds import SiaGrant


class GavelScheduler:
    """Shares of time per job and class of nodes, and the rounds that each job has had of them."""

    def __init__(self, classes: Sequence[NodeClass]) -> None:
        self._classes = classes
        self._speeds: dict[str, Floats] = {}
        self._had: dict[str, Floats] = {}
        self._rounds: dict[str, int] = {}

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """One round: the job that should have had more goes first."""
        speeds = np.stack([self._speed(job) for job in jobs])
        shares = self._shares(jobs, speeds)
        priority = np.empty_like(shares)
        for i, job in enumerate(jobs):
            had = self._had.setdefault(job.asked.name, np.zeros(len(self._classes)))
            priority[i] = shares[i] / np.maximum(had / max(self._rounds.get(job.asked.name, 0), 1), 1e-9)
        free = [one.gpus for one in self._classes]
        chosen: list[SiaGrant | None] = [None] * len(jobs)
        self._give(jobs, np.where(shares > 1e-6, priority, 0.0), free, chosen)
        self._give(jobs, speeds, free, chosen)  # what is left, where it is fastest
        for job, grant in zip(jobs, chosen, strict=True):
            self._rounds[job.asked.name] = self._rounds.get(job.asked.name, 0) + 1
            if grant is not None:
                self._had[job.asked.name][grant.group] += 1
        return chosen

    def next_change(self, now: float) -> float:
        """Turns change every round."""
        return now if self._classes else math.inf

    def _speed(self, job: SiaJob) -> Floats:
        """Samples a second per class over those on the slowest; 0 where the job cannot run."""
        name = job.asked.name
        if name not in self._speeds:
            found = np.zeros(len(self._classes))
            for k, one in enumerate(self._classes):
                if one.type in job.types and one.gpus >= job.asked.gpus and job.asked.only in ("", one.type):
                    whole, rest = divmod(job.asked.gpus, one.size)
                    found[k] = measured_speed(job, job.types[one.type], (one.size,) * whole + ((rest,) if rest else ()))
            self._speeds[name] = found / found[found > 0].min()
        return self._speeds[name]

    def _shares(self, jobs: Sequence[SiaJob], speeds: Floats) -> Floats:
        """The shares of time that make the sum of speeds largest."""
        n, kinds = speeds.shape
        gpus = np.array([job.asked.gpus for job in jobs], dtype=np.float64)
        each = sparse.kron(sparse.eye_array(n), np.ones((1, kinds)))
        fits = sparse.kron(gpus[None, :], sparse.eye_array(kinds))
        upper = np.concatenate([np.ones(n), [float(one.gpus) for one in self._classes]])
        program = LinearProgram(
            speeds.ravel(),
            sparse.csc_array(sparse.vstack([each, fits])),
            np.full(n + kinds, -np.inf),
            upper,
            np.zeros(n * kinds),
            (speeds > 0).astype(np.float64).ravel(),
        )
        return solve(program, "interior").x.reshape(n, kinds)

    def _give(self, jobs: Sequence[SiaJob], rank: Floats, free: list[int], chosen: list[SiaGrant | None]) -> None:
        """Pairs of job and class by descending rank, for jobs that have nothing yet."""
        for flat in np.argsort(-rank, axis=None, kind="stable").tolist():
            i, k = divmod(flat, rank.shape[1])
            if rank[i, k] <= 0.0:
                break
            if chosen[i] is None and jobs[i].asked.gpus <= free[k]:
                chosen[i] = SiaGrant(k, jobs[i].asked.gpus)
                free[k] -= jobs[i].asked.gpus
