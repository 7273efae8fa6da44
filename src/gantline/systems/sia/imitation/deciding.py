"""Sia's decision in its own simulator: believed goodputs, the program, one configuration for each job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.batch import ACCUMULATION, GOODPUT, LOCAL, choose_batch, gain, split
from gantline.models.goodput.speed_model import step_time
from gantline.systems.sia.imitation.jobs import MeasuredType, SiaJob
from gantline.systems.sia.imitation.rounds import RoundScheduler, SiaGrant
from gantline.systems.sia.policies.program import Configurations, choose_configurations, costs, normalised, restart_factor

# The goodput that Sia's policy believes each job would have in each configuration (Sia, SOSP 2023, sections 3.2 and 3.3).
#
# A type that a job has run on has a model of its own. The others are projected from the first type that has one: the
# same replicas there, times the ratio of what was measured on a single GPU of each. A job that has never run is offered
# the least configuration of each type, all alike.


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of the policy."""

    projection: bool = True  # types a job has not run on are projected from those it has
    shared_limit: bool = True  # the most replicas are those of the type on which it has run widest
    batch_cap: bool = True  # adaptive jobs are not expected to go beyond the batch that their submitter asked for


class GoodputMatrix:
    """Rows of believed goodputs for the jobs that are there."""

    def __init__(self, columns: Configurations, assume: Assumptions) -> None:
        self.columns, self.assume = columns, assume
        self._listed = list(zip(columns.group.tolist(), columns.nodes.tolist(), columns.gpus.tolist(), columns.regular.tolist()))

    def rows(self, jobs: Sequence[SiaJob]) -> tuple[Floats, Floats]:
        """Goodput per job and configuration, 0 where a job cannot have it, and the GPUs of one replica there."""
        goodput, unit = zip(*(self._row(job) for job in jobs))
        return np.array(goodput), np.array(unit, dtype=np.float64)

    def _row(self, job: SiaJob) -> tuple[Sequence[float], list[int]]:
        if job.asked.kind == "rigid":
            return _rigid_row(job, self.columns).tolist(), [job.asked.gpus] * len(self.columns)
        classes, projection = self.columns.classes, self.assume.projection
        types = {k: job.types[one.type] for k, one in enumerate(classes) if one.type in job.types and job.asked.only in ("", one.type)}
        unit = [types[k].unit if k in types else 1 for k in range(len(classes))]
        units = [unit[k] for k, *_ in self._listed]
        most = {k: most_replicas(job, classes[k].type) for k in types}
        limits = {k: _limits(job, measured, self.assume) for k, measured in types.items()}
        known = [k for k in types if job.beliefs[classes[k].type].parameters is not None]
        widest = max(most.values(), default=0)
        if self.assume.shared_limit or projection:
            most = dict.fromkeys(most, widest)
        row = [0.0] * len(self._listed)

        def believed(k: int, nodes: int, replicas: int) -> float:
            model = job.beliefs[classes[k].type].parameters
            assert model is not None  # it is known
            return _goodput(job, model, nodes, replicas, limits[k])

        for column, (k, nodes, gpus, regular) in enumerate(self._listed if known else ()):
            replicas, rest = divmod(gpus, unit[k])
            if k not in types or not regular or rest or replicas > most[k]:
                continue
            if k in known:
                row[column] = believed(k, nodes, replicas)
            elif projection:
                first = known[0]
                there = believed(first, -(-replicas * unit[first] // classes[first].size), replicas)
                row[column] = there * (types[k].single / types[first].single)
        least = min((goodput for goodput in row if goodput > 0.0), default=0.0)
        if least and projection:
            return row, units
        seen = -1  # what is not projected is offered at the row's least, to be tried at all; or the least of each class, all alike
        for column, (k, _, gpus, regular) in enumerate(self._listed):  # the least configuration of a class comes first
            if k != seen and k in types and regular and gpus % unit[k] == 0:
                seen = k
                if not least or k not in known:
                    row[column] = least or unit[k]
        return row, units


def most_replicas(job: SiaJob, kind: str) -> int:
    """Twice what it has run with on that type, at least one, and no more than its largest batch has local batches."""
    measured = job.types[kind]
    if job.asked.kind == "strong-scaling":
        return min(max(job.asked.gpus, 1), max(int(job.fixed_batch // measured.local_least), 1))
    return min(max(2 * job.beliefs[kind].most_replicas, 1), int(job.training.most // measured.local_least))


def _limits(job: SiaJob, measured: MeasuredType, assume: Assumptions) -> Floats:
    """The batches that the policy assumes on a type."""
    if job.fixed_batch:
        return job.limits(measured, measured.policy_most, max(job.training.most, job.fixed_batch))
    capped = assume.batch_cap and job.asked.batch > 0 and not measured.hybrid
    return job.limits(measured, measured.policy_most, job.asked.batch if capped else job.training.most)


def _rigid_row(job: SiaJob, columns: Configurations) -> Floats:
    """Samples a second with its GPUs on each type, as measured beforehand; rigid jobs have a column of their own in each class."""
    row = np.zeros(len(columns))
    for k, one in enumerate(columns.classes):
        column = columns.find(k, job.asked.gpus)
        if column >= 0 and one.type in job.types and job.asked.only in ("", one.type):
            row[column] = measured_speed(job, job.types[one.type], columns.shape(column))
    return row


def own_step(job: SiaJob, measured: MeasuredType, shape: tuple[int, ...], replicas: int) -> tuple[int, float]:
    """Samples of a step with the batch that the job always has, and its seconds."""
    out = np.zeros(3)
    split(job.fixed_batch, replicas, job.limits(measured, measured.job_most(shape), max(job.training.most, job.fixed_batch)), out)
    local, steps = max(int(measured.clipped(out[LOCAL], sum(shape))), 1), int(out[ACCUMULATION])
    step, sync = measured.times(shape, local)
    return replicas * local * (steps + 1), step + steps * (step - sync)


def measured_speed(job: SiaJob, measured: MeasuredType, shape: tuple[int, ...]) -> float:
    """Samples a second with that batch."""
    samples, seconds = own_step(job, measured, shape, sum(shape) // measured.unit)
    return samples / seconds


def _goodput(job: SiaJob, model: Floats, nodes: int, replicas: int, limits: Floats) -> float:
    """The best goodput, or that of the one batch that a job has."""
    work = np.zeros(3)
    if not job.fixed_batch:
        choose_batch(model, *job.noise, nodes, replicas, limits, work)
        return float(work[GOODPUT])
    split(job.fixed_batch, replicas, limits, work)
    seconds = step_time(model, nodes, replicas, work[LOCAL], int(work[ACCUMULATION]))
    return float(limits[0] * gain(*job.noise, job.fixed_batch / limits[0]) / seconds)


# Sia's decision in its own simulator: believed goodputs, the program, one configuration for each job.


@dataclass
class SiaScheduler(RoundScheduler):
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
