"""How jobs advance: the original's inner loop, compiled.

A job waits for its restart delay, then trains in segments that end with an epoch or with the interval. At the end of an epoch the
segment's length is rounded to whole seconds while the progress is exact, and the batch is chosen anew after every segment.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants
from gantline.core.jit import kernel
from gantline.models.goodput.batch import ACCUMULATION, BASE, GOODPUT, LOCAL, LOCAL_LEAST, choose_batch, cut, split
from gantline.models.goodput.efficiency import gain
from gantline.models.goodput.observations import BATCH, LOG_COMPUTE, LOG_STEP, NODES, REPLICAS
from gantline.systems.pollux.imitation.applications import Courses

RESTART: Final = 30.0  # seconds that a start or a restart takes


class Column(Constants):
    """Columns of jobs."""

    SUBMIT, PROGRESS, DELAY, LEFT, SERVICE, SECONDS, FINISH, SQUARE, VARIANCE, LOCAL_NOW, STEPS_NOW, WANTED, SLOWED = range(13)
    # I: integer columns of jobs; MOST is the largest number of devices it has run on, MODEL whether its speed has been fitted
    APP, EPOCH, DEVICES, SPAN, TIMES, RESTARTS, MOST, SEEN, MODEL = range(9)


F_COLUMNS: Final = 13
I_COLUMNS: Final = 9


class PolluxJobs(NamedTuple):
    """All jobs, in the order of their file."""

    F: Floats
    I: Ints
    model: Floats  # [job, 7]
    seen: Floats  # [job, row, 5]: measured speeds
    learns: bool  # whether speeds are fitted at all
    out: Floats  # to work with


@kernel
def set_batch(jobs: PolluxJobs, courses: Courses, j: int) -> None:
    """Choose local batch and accumulation for the job's placement: what was asked for, or the best by its model."""
    F, I, out = jobs.F, jobs.I, jobs.out
    limits, devices = courses.limits[I[Column.APP, j]], I[Column.DEVICES, j]
    wanted = F[Column.WANTED, j]
    if wanted <= 0.0 and I[Column.MODEL, j] == 1:
        choose_batch(jobs.model[j], F[Column.SQUARE, j], F[Column.VARIANCE, j], I[Column.SPAN, j], devices, limits, out)
        if out[GOODPUT] > 0.0:
            cut(devices, limits, out)
            F[Column.LOCAL_NOW, j], F[Column.STEPS_NOW, j] = out[LOCAL], out[ACCUMULATION]
            return
    if wanted <= 0.0:
        wanted = max(limits[BASE], limits[LOCAL_LEAST] * devices)
    split(wanted, devices, limits, out)
    F[Column.LOCAL_NOW, j], F[Column.STEPS_NOW, j] = out[LOCAL], out[ACCUMULATION]


@kernel
def place_of_time(jobs: PolluxJobs, courses: Courses, j: int) -> int:
    """Where the job's step time is in the table of times; batches below the least count as that."""
    below = jobs.F[Column.LOCAL_NOW, j] - courses.limits[jobs.I[Column.APP, j], LOCAL_LEAST]
    return int(jobs.I[Column.TIMES, j] + max(below, 0.0))


@kernel
def read_noise(jobs: PolluxJobs, courses: Courses, j: int, batch: float) -> None:
    """Gradient statistics at a total batch in the present epoch, linear between the batches that were measured."""
    F, I = jobs.F, jobs.I
    app, epoch = I[Column.APP, j], I[Column.EPOCH, j]
    batches, square, variance = courses.batches[app], courses.square[app], courses.variance[app]
    k = 0
    while k + 1 < batches.size and batches[k + 1] <= batch:
        k += 1
    if batch <= batches[0] or k + 1 >= batches.size or batches[k + 1] == np.inf:
        F[Column.SQUARE, j], F[Column.VARIANCE, j] = square[k, epoch], variance[k, epoch]
        return
    part = (batch - batches[k]) / (batches[k + 1] - batches[k])
    F[Column.SQUARE, j] = square[k, epoch] + part * (square[k + 1, epoch] - square[k, epoch])
    F[Column.VARIANCE, j] = variance[k, epoch] + part * (variance[k + 1, epoch] - variance[k, epoch])


@kernel
def note_speed(jobs: PolluxJobs, j: int, step: float, sync: float) -> bool:
    """Remember a speed that was not seen yet on so many nodes and devices with this batch; whether it was new."""
    F, I = jobs.F, jobs.I
    seen, count = jobs.seen[j], I[Column.SEEN, j]
    for i in range(count):
        if seen[i, NODES] == I[Column.SPAN, j] and seen[i, REPLICAS] == I[Column.DEVICES, j] and seen[i, BATCH] == F[Column.LOCAL_NOW, j]:
            return False
    row = seen[count]
    row[NODES], row[REPLICAS], row[BATCH] = I[Column.SPAN, j], I[Column.DEVICES, j], F[Column.LOCAL_NOW, j]
    row[LOG_COMPUTE], row[LOG_STEP] = np.log(max(step - sync, 1e-8)), np.log(step)
    I[Column.SEEN, j] = count + 1
    I[Column.MOST, j] = max(I[Column.MOST, j], I[Column.DEVICES, j])
    return True


@kernel
def advance(jobs: PolluxJobs, courses: Courses, times: Floats, rows: Ints, first: int, end: float, interference: float) -> int:
    """Let the jobs of ``rows`` from the ``first`` on use up their seconds; -1, or the place of one whose time or model is wanted first."""
    F, I = jobs.F, jobs.I
    for place in range(first, rows.size):
        j = rows[place]
        app, devices = I[Column.APP, j], I[Column.DEVICES, j]
        burnt = min(F[Column.DELAY, j], F[Column.LEFT, j])
        F[Column.DELAY, j] -= burnt
        F[Column.LEFT, j] -= burnt
        F[Column.SERVICE, j] += devices * burnt
        F[Column.SECONDS, j] += burnt
        while F[Column.LEFT, j] > 0.0 and I[Column.EPOCH, j] < courses.epochs[app]:
            local, steps = F[Column.LOCAL_NOW, j], F[Column.STEPS_NOW, j]
            at = place_of_time(jobs, courses, j)
            step, sync = times[0, at], times[1, at]
            if np.isnan(step) or (jobs.learns and note_speed(jobs, j, step, sync)):
                return place
            total = devices * local * (steps + 1.0)
            read_noise(jobs, courses, j, total)
            rate = gain(F[Column.SQUARE, j], F[Column.VARIANCE, j], total / courses.limits[app, BASE]) / (step + steps * (step - sync))
            if F[Column.SLOWED, j] > 0.0:
                rate *= 1.0 - interference
            edge, used = courses.edges[app, I[Column.EPOCH, j]], F[Column.LEFT, j]
            if F[Column.PROGRESS, j] + rate * used < edge:
                F[Column.PROGRESS, j] += rate * used
                F[Column.LEFT, j] = 0.0
            else:
                used = np.rint((edge - F[Column.PROGRESS, j]) / rate)
                F[Column.PROGRESS, j] = edge
                F[Column.LEFT, j] -= used
                I[Column.EPOCH, j] += 1
                if I[Column.EPOCH, j] == courses.epochs[app]:
                    F[Column.FINISH, j] = end - F[Column.LEFT, j]
            F[Column.SERVICE, j] += devices * used
            F[Column.SECONDS, j] += used
            set_batch(jobs, courses, j)
    return -1
