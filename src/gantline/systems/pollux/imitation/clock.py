"""How jobs advance in Pollux' simulator: applications in matrices, and the original's inner loop, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.models.goodput.batch import ACCUMULATION, BASE, GOODPUT, LOCAL, LOCAL_LEAST, BatchLimits, choose_batch, cut, split
from gantline.models.goodput.efficiency import gain
from gantline.models.goodput.measured import Application, Profiles, Shape, packed_shape
from gantline.models.goodput.observations import BATCH, LOG_COMPUTE, LOG_STEP, NODES, REPLICAS

# Applications as the loop takes them: batch limits, ends of epochs and gradient statistics in matrices, step times in rows that grow.
#
# Two applications have rules of their own in the original: yolov3 never has more than 8 examples on a device, and ncf always runs on one
# device with a batch of 32,768.


LOCAL_MOST: Final = {"yolov3": 8.0}
PINNED: Final = {"ncf": 32768.0}  # total batch of applications that get one device
OPTIMUS_NODE: Final = 4  # devices of a node as Optimus' oracle packs them, on smaller nodes too; the original has no larger ones

_MOST_SYNC = 0.999  # of a step: something is left for computing


class Courses(NamedTuple):
    """The applications in matrices, padded to the longest."""

    limits: Floats  # [application, 5], see performance.goodput.batch
    epochs: Ints
    edges: Floats  # [application, epoch]
    batches: Floats  # [application, batch], padded with infinity
    square: Floats  # [application, batch, epoch]
    variance: Floats


class Applications:
    """The applications of a trace on one device type."""

    def __init__(self, profiles: Profiles, names: Sequence[str], kind: str, per_node: int) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.per_node = per_node
        self._known: list[Application] = [profiles[name] for name in self.names]
        self._times = [app.on(kind) for app in self._known]
        self.limits = [
            BatchLimits(app.training.base, app.training.most, times.local_least, LOCAL_MOST.get(app.name, times.local_most))
            for app, times in zip(self._known, self._times)
        ]
        self.courses = self._courses()
        self.times = np.full((2, 1 << 14), np.nan)  # step and sync seconds of all rows, one behind the other
        self._filled = 0
        self._rows: dict[tuple[int, Shape], int] = {}
        self.unmeasured = 0  # shapes that had to be interpolated

    def _courses(self) -> Courses:
        trainings = [app.training for app in self._known]
        count, batches, epochs = len(trainings), max(len(t.batches) for t in trainings), max(t.epochs for t in trainings)
        found = Courses(
            np.array([limits.row() for limits in self.limits]),
            np.array([t.epochs for t in trainings], dtype=np.int64),
            np.zeros((count, epochs)),
            np.full((count, batches), np.inf),
            np.zeros((count, batches, epochs)),
            np.zeros((count, batches, epochs)),
        )
        for i, t in enumerate(trainings):
            found.edges[i, : t.epochs] = t.edges
            found.batches[i, : len(t.batches)] = t.batches
            found.square[i, : len(t.batches), : t.epochs] = t.square
            found.variance[i, : len(t.batches), : t.epochs] = t.variance
        return found

    def row(self, app: int, shape: Shape) -> int:
        """Where the times of a shape begin in ``times``: one pair for each local batch from the least to the largest."""
        if (app, shape) not in self._rows:
            limits, times = self.limits[app], self._times[app]
            batches = np.arange(limits.local_least, limits.local_most + 1.0)
            first, end = self._filled, self._filled + len(batches)
            if end > self.times.shape[1]:
                grown = np.full((2, max(2 * self.times.shape[1], end)), np.nan)
                grown[:, :first] = self.times[:, :first]
                self.times = grown
            if times.is_measured(shape):
                self.times[:, first:end] = _possible(*times.lookup(shape, batches))
            else:
                self.unmeasured += 1
            self._rows[app, shape], self._filled = first, end
        return self._rows[app, shape]

    def lacks(self, place: int) -> bool:
        """Whether a time was not looked up yet: shapes that were not measured are interpolated batch by batch, as they come up."""
        return bool(np.isnan(self.times[0, place]))

    def fill(self, app: int, shape: Shape, place: int) -> None:
        """Look up the time at a place of the shape's row."""
        batch = self.limits[app].local_least + place - self._rows[app, shape]
        step, sync = _possible(*self._times[app].lookup(shape, batch))
        self.times[:, place] = step[0], sync[0]

    def step_time(self, app: int, shape: Shape, local: float, steps: float) -> float:
        """Seconds of a step with accumulation, as measured."""
        step, sync = _possible(*self._times[app].lookup(shape, local))
        return float(step[0] + steps * (step[0] - sync[0]))

    def predicted(self, app: int, batch: float, most: int) -> Floats:
        """Optimus' oracle: seconds of a step at a total batch for 1, 2, ... devices, packed; alone always with accumulation."""
        limits, out = self.courses.limits[app].copy(), np.zeros(3)
        found = np.zeros(most + 1)
        for devices in range(1, most + 1):
            if devices == 1:
                limits[0] = -1.0  # below any batch, so that it accumulates in any case
            split(batch, devices, limits, out)
            limits[0] = self.limits[app].base
            found[devices] = self.step_time(app, packed_shape(devices, max(self.per_node, OPTIMUS_NODE)), out[1], out[2])
        return found

    def remaining(self, app: int, batch: float) -> Floats:
        """Optimus' steps to come per epoch, counted from the end of that epoch; 1 in the last."""
        training = self._known[app].training
        steps = np.array([training.iterations(batch, epoch) for epoch in range(training.epochs)])
        left: Floats = steps[-1] - steps
        left[-1] = 1.0
        return left


def _possible(step: Floats, sync: Floats) -> tuple[Floats, Floats]:
    """Times in which averaging is no longer than the step that it is part of: accumulating would gain time otherwise."""
    return step, np.minimum(sync, _MOST_SYNC * step)


# How jobs advance: the original's inner loop, compiled.
#
# A job waits for its restart delay, then trains in segments that end with an epoch or with the interval. At the end of an epoch the
# segment's length is rounded to whole seconds while the progress is exact, and the batch is chosen anew after every segment.

RESTART: Final = 30.0  # seconds that a start or a restart takes

# F: float columns of jobs
SUBMIT, PROGRESS, DELAY, LEFT, SERVICE, SECONDS, FINISH, SQUARE, VARIANCE, LOCAL_NOW, STEPS_NOW, WANTED, SLOWED = range(13)
F_COLUMNS: Final = 13
# I: integer columns of jobs; MOST is the largest number of devices it has run on, MODEL whether its speed has been fitted
APP, EPOCH, DEVICES, SPAN, TIMES, RESTARTS, MOST, SEEN, MODEL = range(9)
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
    limits, devices = courses.limits[I[APP, j]], I[DEVICES, j]
    wanted = F[WANTED, j]
    if wanted <= 0.0 and I[MODEL, j] == 1:
        choose_batch(jobs.model[j], F[SQUARE, j], F[VARIANCE, j], I[SPAN, j], devices, limits, out)
        if out[GOODPUT] > 0.0:
            cut(devices, limits, out)
            F[LOCAL_NOW, j], F[STEPS_NOW, j] = out[LOCAL], out[ACCUMULATION]
            return
    if wanted <= 0.0:
        wanted = max(limits[BASE], limits[LOCAL_LEAST] * devices)
    split(wanted, devices, limits, out)
    F[LOCAL_NOW, j], F[STEPS_NOW, j] = out[LOCAL], out[ACCUMULATION]


@kernel
def place_of_time(jobs: PolluxJobs, courses: Courses, j: int) -> int:
    """Where the job's step time is in the table of times; batches below the least count as that."""
    below = jobs.F[LOCAL_NOW, j] - courses.limits[jobs.I[APP, j], LOCAL_LEAST]
    return int(jobs.I[TIMES, j] + max(below, 0.0))


@kernel
def read_noise(jobs: PolluxJobs, courses: Courses, j: int, batch: float) -> None:
    """Gradient statistics at a total batch in the present epoch, linear between the batches that were measured."""
    F, I = jobs.F, jobs.I
    app, epoch = I[APP, j], I[EPOCH, j]
    batches, square, variance = courses.batches[app], courses.square[app], courses.variance[app]
    k = 0
    while k + 1 < batches.size and batches[k + 1] <= batch:
        k += 1
    if batch <= batches[0] or k + 1 >= batches.size or batches[k + 1] == np.inf:
        F[SQUARE, j], F[VARIANCE, j] = square[k, epoch], variance[k, epoch]
        return
    part = (batch - batches[k]) / (batches[k + 1] - batches[k])
    F[SQUARE, j] = square[k, epoch] + part * (square[k + 1, epoch] - square[k, epoch])
    F[VARIANCE, j] = variance[k, epoch] + part * (variance[k + 1, epoch] - variance[k, epoch])


@kernel
def note_speed(jobs: PolluxJobs, j: int, step: float, sync: float) -> bool:
    """Remember a speed that was not seen yet on so many nodes and devices with this batch; whether it was new."""
    F, I = jobs.F, jobs.I
    seen, count = jobs.seen[j], I[SEEN, j]
    for i in range(count):
        if seen[i, NODES] == I[SPAN, j] and seen[i, REPLICAS] == I[DEVICES, j] and seen[i, BATCH] == F[LOCAL_NOW, j]:
            return False
    row = seen[count]
    row[NODES], row[REPLICAS], row[BATCH] = I[SPAN, j], I[DEVICES, j], F[LOCAL_NOW, j]
    row[LOG_COMPUTE], row[LOG_STEP] = np.log(max(step - sync, 1e-8)), np.log(step)
    I[SEEN, j] = count + 1
    I[MOST, j] = max(I[MOST, j], I[DEVICES, j])
    return True


@kernel
def advance(jobs: PolluxJobs, courses: Courses, times: Floats, rows: Ints, first: int, end: float, interference: float) -> int:
    """Let the jobs of ``rows`` from the ``first`` on use up their seconds; -1, or the place of one whose time or model is wanted first."""
    F, I = jobs.F, jobs.I
    for place in range(first, rows.size):
        j = rows[place]
        app, devices = I[APP, j], I[DEVICES, j]
        burnt = min(F[DELAY, j], F[LEFT, j])
        F[DELAY, j] -= burnt
        F[LEFT, j] -= burnt
        F[SERVICE, j] += devices * burnt
        F[SECONDS, j] += burnt
        while F[LEFT, j] > 0.0 and I[EPOCH, j] < courses.epochs[app]:
            local, steps = F[LOCAL_NOW, j], F[STEPS_NOW, j]
            at = place_of_time(jobs, courses, j)
            step, sync = times[0, at], times[1, at]
            if np.isnan(step) or (jobs.learns and note_speed(jobs, j, step, sync)):
                return place
            total = devices * local * (steps + 1.0)
            read_noise(jobs, courses, j, total)
            rate = gain(F[SQUARE, j], F[VARIANCE, j], total / courses.limits[app, BASE]) / (step + steps * (step - sync))
            if F[SLOWED, j] > 0.0:
                rate *= 1.0 - interference
            edge, used = courses.edges[app, I[EPOCH, j]], F[LEFT, j]
            if F[PROGRESS, j] + rate * used < edge:
                F[PROGRESS, j] += rate * used
                F[LEFT, j] = 0.0
            else:
                used = np.rint((edge - F[PROGRESS, j]) / rate)
                F[PROGRESS, j] = edge
                F[LEFT, j] -= used
                I[EPOCH, j] += 1
                if I[EPOCH, j] == courses.epochs[app]:
                    F[FINISH, j] = end - F[LEFT, j]
            F[SERVICE, j] += devices * used
            F[SECONDS, j] += used
            set_batch(jobs, courses, j)
    return -1
