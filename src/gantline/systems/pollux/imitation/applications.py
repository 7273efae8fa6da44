"""Applications as the loop takes them: batch limits, ends of epochs and gradient statistics in matrices, step times in rows that grow.

Two applications have rules of their own in the original: yolov3 never has more than 8 examples on a device, and ncf always runs on one
device with a batch of 32,768.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.goodput.batch import BatchLimits, split
from gantline.models.goodput.measured import Application, Profiles, Shape, packed_shape

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
