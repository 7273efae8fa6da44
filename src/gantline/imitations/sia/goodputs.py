"""The goodput that Sia's policy believes each job would have in each configuration (Sia, SOSP 2023, sections 3.2 and 3.3).

A type that a job has run on has a model of its own. The others are projected from the first type that has one: the same replicas there,
times the ratio of what was measured on a single GPU of each. A job that has never run is offered the least configuration of each type, all
alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.imitations.sia.jobs import Job
from gantline.imitations.sia.measured_types import MeasuredType
from gantline.performance.goodput.batch import ACCUMULATION, GOODPUT, LOCAL, choose, split
from gantline.performance.goodput.efficiency import gain
from gantline.performance.goodput.speed_model import step_time
from gantline.policies.sia.configurations import Configurations


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the policy reckons with."""

    projection: bool = True  # types a job has not run on are projected from those it has
    shared_limit: bool = True  # the most replicas are those of the type on which it has run widest
    batch_cap: bool = True  # adaptive jobs are not expected to go beyond the batch that their submitter asked for


def goodput_row(job: Job, columns: Configurations, assume: Assumptions) -> Floats:
    """Believed goodput per configuration; 0 where the job cannot have it."""
    if job.asked.kind == "rigid":
        return _rigid_row(job, columns)
    classes = columns.classes
    usable = [k for k, one in enumerate(classes) if one.type in job.types and job.asked.only in ("", one.type)]
    known = [k for k in usable if job.beliefs[classes[k].type].parameters is not None]
    row = np.zeros(len(columns))
    if not known:
        for k in usable:
            unit = job.types[classes[k].type].unit
            column = _least(columns, k, unit)
            if column >= 0:
                row[column] = unit
        return row
    most = {k: most_replicas(job, classes[k].type) for k in usable}
    widest = max(most.values())
    for k in usable:
        measured = job.types[classes[k].type]
        limit = widest if assume.shared_limit or assume.projection else most[k]
        mine = np.flatnonzero(_whole_replicas(columns, k, measured.unit) & (columns.gpus <= limit * measured.unit))
        replicas = columns.gpus[mine] // measured.unit
        if job.beliefs[classes[k].type].parameters is not None:
            row[mine] = _evaluate(job, classes[k].type, columns.nodes[mine], replicas, assume)
        elif assume.projection:
            origin = classes[known[0]]
            other = job.types[origin.type]
            nodes = -(-replicas * other.unit // origin.size)
            row[mine] = _evaluate(job, origin.type, nodes, replicas, assume) * (measured.single / other.single)
    if not assume.projection:  # what is not projected is offered at its least, so that it is tried at all
        least = row[row > 0.0].min(initial=np.inf)
        for k in set(usable) - set(known):
            column = _least(columns, k, job.types[classes[k].type].unit)
            if column >= 0 and np.isfinite(least):
                row[column] = least
    return row


def unit_row(job: Job, columns: Configurations) -> Floats:
    """GPUs of one replica in each configuration; all of them for rigid jobs."""
    if job.asked.kind == "rigid":
        return np.full(len(columns), float(job.asked.gpus))
    units = [job.types[one.type].unit if one.type in job.types else 1 for one in columns.classes]
    return np.array(units, dtype=np.float64)[columns.group]


def most_replicas(job: Job, kind: str) -> int:
    """Twice what it has run with on that type, at least one, and no more than its largest batch has local batches."""
    measured = job.types[kind]
    if job.asked.kind == "strong-scaling":
        return min(max(job.asked.gpus, 1), max(int(job.fixed_batch // measured.local_least), 1))
    return min(max(2 * job.beliefs[kind].most_replicas, 1), int(job.training.most // measured.local_least))


def _least(columns: Configurations, group: int, unit: int) -> int:
    """The least configuration of a class that holds a whole number of replicas."""
    found = np.flatnonzero(_whole_replicas(columns, group, unit))
    return int(found[0]) if len(found) else -1


def _whole_replicas(columns: Configurations, group: int, unit: int) -> Bools:
    return np.asarray((columns.group == group) & columns.regular & (columns.gpus % unit == 0))


def _evaluate(job: Job, kind: str, nodes: Ints, replicas: Ints, assume: Assumptions) -> Floats:
    """Goodput by the job's model of a type, with the batches that the policy reckons with."""
    measured, parameters = job.types[kind], job.beliefs[kind].parameters
    assert parameters is not None
    out = np.zeros(len(nodes))
    if job.fixed_batch:
        limits = job.limits(measured, measured.policy_most, max(job.training.most, job.fixed_batch))
        _fixed_goodputs(parameters, *job.noise, nodes, replicas, job.fixed_batch, limits, out, np.zeros(3))
    else:
        capped = assume.batch_cap and job.asked.batch > 0 and not measured.hybrid
        limits = job.limits(measured, measured.policy_most, job.asked.batch if capped else job.training.most)
        _best_goodputs(parameters, *job.noise, nodes, replicas, limits, out, np.zeros(3))
    return out


def _rigid_row(job: Job, columns: Configurations) -> Floats:
    """Samples a second with its GPUs on each type, as measured beforehand; rigid jobs have a column of their own in each class."""
    row = np.zeros(len(columns))
    for k, one in enumerate(columns.classes):
        column = columns.find(k, job.asked.gpus)
        if column >= 0 and one.type in job.types and job.asked.only in ("", one.type):
            row[column] = measured_speed(job, job.types[one.type], columns.shape(column))
    return row


def measured_speed(job: Job, measured: MeasuredType, shape: tuple[int, ...]) -> float:
    """Samples a second with the batch that the job always has."""
    out, replicas = np.zeros(3), sum(shape)
    split(job.fixed_batch, replicas, job.limits(measured, measured.job_most(shape), max(job.training.most, job.fixed_batch)), out)
    local, steps = max(int(measured.clipped(out[LOCAL], replicas)), 1), int(out[ACCUMULATION])
    step, sync = measured.times(shape, local)
    return replicas * local * (steps + 1) / (step + steps * (step - sync))


@kernel
def _best_goodputs(
    p: Floats, square: float, variance: float, nodes: Ints, replicas: Ints, limits: Floats, out: Floats, work: Floats
) -> None:
    """The best goodput of each configuration."""
    for i in range(nodes.size):
        choose(p, square, variance, nodes[i], replicas[i], limits, work)
        out[i] = work[GOODPUT]


@kernel
def _fixed_goodputs(
    p: Floats, square: float, variance: float, nodes: Ints, replicas: Ints, batch: float, limits: Floats, out: Floats, work: Floats
) -> None:
    """The goodput of each configuration with one total batch."""
    for i in range(nodes.size):
        split(batch, replicas[i], limits, work)
        seconds = step_time(p, nodes[i], replicas[i], work[LOCAL], int(work[ACCUMULATION]))
        out[i] = limits[0] * gain(square, variance, batch / limits[0]) / seconds
