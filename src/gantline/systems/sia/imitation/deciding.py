"""Sia's decision in its own simulator: believed goodputs, the program, one configuration for each job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
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


class Terms:
    """What of one job's row changes seldom: per class of nodes the GPUs of a replica, batch limits, and what one GPU was measured to do."""

    def __init__(self, job: SiaJob, columns: Configurations, assume: Assumptions) -> None:
        count = len(columns.classes)
        self.unit, self.single = np.ones(count, dtype=np.int64), np.zeros(count)
        self.limits = np.ones((count, 5))
        self.rigid = _rigid_row(job, columns) if job.asked.kind == "rigid" else None
        self.unit_row = np.full(len(columns), float(job.asked.gpus))
        self._kinds = [one.type if one.type in job.types and job.asked.only in ("", one.type) else "" for one in columns.classes]
        for k, kind in enumerate(self._kinds):
            if kind:
                measured = job.types[kind]
                self.unit[k], self.single[k] = measured.unit, measured.single
                self.limits[k] = _limits(job, measured, assume)
        if self.rigid is None:
            self.unit_row = self.unit[columns.group].astype(np.float64)
        self.model, self.most, self.known = np.zeros((count, 7)), np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        self._rows = [-1] * count

    def update(self, job: SiaJob) -> None:
        """Take over models that have changed."""
        for k, kind in enumerate(self._kinds):
            if not kind or self._rows[k] == len(job.beliefs[kind].rows):
                continue
            belief = job.beliefs[kind]
            self._rows[k] = len(belief.rows)
            self.most[k] = most_replicas(job, kind)
            if belief.parameters is not None:
                self.model[k], self.known[k] = belief.parameters, True


class BelievedTerms(NamedTuple):
    """`Terms` of all jobs, the job first and the class of nodes second, with what a job has whatever the class."""

    model: Floats
    known: Bools
    most: Ints
    unit: Ints
    single: Floats
    limits: Floats
    noise: Floats
    fixed: Floats


class OfferedColumns(NamedTuple):
    """GPUs of a node in each class; of each configuration its class, nodes and GPUs, and whether all jobs may have it."""

    size: Ints
    group: Ints
    nodes: Ints
    gpus: Ints
    regular: Bools


class GoodputMatrix:
    """Rows of believed goodputs for the jobs that are there; what changes seldom is kept from round to round."""

    def __init__(self, columns: Configurations, assume: Assumptions) -> None:
        self.columns, self.assume = columns, assume
        self._terms: dict[int, Terms] = {}
        self._size = np.array([one.size for one in columns.classes], dtype=np.int64)

    def rows(self, jobs: Sequence[SiaJob]) -> tuple[Floats, Floats]:
        """Goodput per job and configuration, 0 where a job cannot have it, and the GPUs of one replica there."""
        columns, found = self.columns, []
        for job in jobs:
            if job.asked.row not in self._terms:
                self._terms[job.asked.row] = Terms(job, columns, self.assume)
            found.append(self._terms[job.asked.row])
            found[-1].update(job)
        out = np.zeros((len(jobs), len(columns)))
        stacked = {name: np.stack([getattr(each, name) for each in found]) for name in BelievedTerms._fields[:6]}
        believed = BelievedTerms(**stacked, noise=np.array([job.noise for job in jobs]), fixed=np.array([job.fixed_batch for job in jobs]))
        offered = OfferedColumns(self._size, columns.group, columns.nodes, columns.gpus, columns.regular)
        _fill(believed, offered, self.assume.projection, self.assume.shared_limit or self.assume.projection, out, np.zeros(3))
        for k, each in enumerate(found):
            if each.rigid is not None:
                out[k] = each.rigid
        return out, np.stack([each.unit_row for each in found])


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


def measured_speed(job: SiaJob, measured: MeasuredType, shape: tuple[int, ...]) -> float:
    """Samples a second with the batch that the job always has."""
    out, replicas = np.zeros(3), sum(shape) // measured.unit
    split(job.fixed_batch, replicas, job.limits(measured, measured.job_most(shape), max(job.training.most, job.fixed_batch)), out)
    local, steps = max(int(measured.clipped(out[LOCAL], sum(shape))), 1), int(out[ACCUMULATION])
    step, sync = measured.times(shape, local)
    return replicas * local * (steps + 1) / (step + steps * (step - sync))


@kernel
def _fill(believed: BelievedTerms, offered: OfferedColumns, projection: bool, shared: bool, out: Floats, work: Floats) -> None:
    """All rows; a class on which a job was not measured has ``single`` 0."""
    model, known, most, unit, single, limits, noise, fixed = believed
    size, group, nodes, gpus, regular = offered
    classes = size.size
    for j in range(out.shape[0]):
        first, widest = -1, 0
        for k in range(classes):
            if single[j, k] > 0.0:
                widest = max(widest, most[j, k])
                if first < 0 and known[j, k]:
                    first = k
        least = np.inf
        for c in range(group.size):
            k = group[c]
            if first < 0 or single[j, k] <= 0.0 or not regular[c] or gpus[c] % unit[j, k] != 0:
                continue
            replicas = gpus[c] // unit[j, k]
            if replicas <= (widest if shared else most[j, k]):
                if known[j, k]:
                    out[j, c] = _goodput(model[j, k], noise[j], nodes[c], replicas, fixed[j], limits[j, k], work)
                elif projection:
                    over = -(-replicas * unit[j, first] // size[first])
                    there = _goodput(model[j, first], noise[j], over, replicas, fixed[j], limits[j, first], work)
                    out[j, c] = there * (single[j, k] / single[j, first])
                if out[j, c] > 0.0:
                    least = min(least, out[j, c])
        nothing = least == np.inf  # it has never run, or its model finds no batch: the least of each class, all alike
        if nothing or not projection:  # what is not projected is offered at the row's least, to be tried at all
            seen = -1
            for c in range(group.size):  # the least configuration of a class comes first
                k = group[c]
                if k != seen and single[j, k] > 0.0 and regular[c] and gpus[c] % unit[j, k] == 0:
                    seen = k
                    if nothing or not known[j, k]:
                        out[j, c] = unit[j, k] if nothing else least


@kernel
def _goodput(p: Floats, noise: Floats, nodes: int, replicas: int, fixed: float, limits: Floats, work: Floats) -> float:
    """The best goodput, or that of the one batch that a job has."""
    if fixed <= 0.0:
        choose_batch(p, noise[0], noise[1], nodes, replicas, limits, work)
        return float(work[GOODPUT])
    split(fixed, replicas, limits, work)
    seconds = step_time(p, nodes, replicas, work[LOCAL], int(work[ACCUMULATION]))
    return float(limits[0] * gain(noise[0], noise[1], fixed / limits[0]) / seconds)


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
