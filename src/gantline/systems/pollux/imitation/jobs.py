"""The jobs of Pollux' simulator: applications as they were measured, and what a job shows and learns of its speed.

Two applications have rules of their own in the original: yolov3 never has more than 8 examples on a device, and ncf always runs on one
device with a batch of 32,768.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby
from typing import Final

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.batch import ACCUMULATION, BASE, LOCAL, BatchLimits, split
from gantline.models.goodput.measured import Application, Shape, packed_shape
from gantline.models.goodput.trained_job import TrainedJob

RESTART: Final = 30.0  # seconds that a start or a restart takes
LOCAL_MOST: Final = {"yolov3": 8.0}
PINNED: Final = {"ncf": 32768.0}  # total batch of applications that get one device
OPTIMUS_NODE: Final = 4  # devices of a node as Optimus' oracle packs them, on smaller nodes too; the original has no larger ones

Nodes = tuple[int, ...]  # the node of each device
Fit = Callable[[Floats], Floats]  # from measurements to the parameters of a model


def shape_of(nodes: Nodes) -> Shape:
    """Devices per node in the order of the list: run lengths of equal nodes."""
    return tuple(len(list(same)) for _, same in groupby(nodes))


class PolluxApplication:
    """An application on the cluster's device type."""

    def __init__(self, application: Application, kind: str, per_node: int) -> None:
        self.name, self.per_node = application.name, per_node
        self.training, self.times = application.training, application.on(kind)
        least, most = self.times.local_least, LOCAL_MOST.get(application.name, self.times.local_most)
        self.limits = BatchLimits(self.training.base, self.training.most, least, most)
        self.row = self.limits.row()

    def step_time(self, shape: Shape, local: float, steps: float) -> float:
        """Seconds of a step with accumulation, as measured."""
        step, sync = self.times.seconds(shape, local)
        return step + steps * (step - sync)

    def predicted(self, batch: float, most: int) -> Floats:
        """Optimus' oracle: seconds of a step at a total batch for 1, 2, ... devices, packed; alone always with accumulation."""
        limits, out, found = self.row.copy(), np.zeros(3), np.zeros(most + 1)
        limits[BASE] = -1.0  # below any batch, so that a device alone accumulates in any case
        for devices in range(1, most + 1):
            split(batch, devices, limits, out)
            limits[BASE] = self.limits.base
            shape = packed_shape(devices, max(self.per_node, OPTIMUS_NODE))
            found[devices] = self.step_time(shape, float(out[LOCAL]), float(out[ACCUMULATION]))
        return found

    def remaining(self, batch: float) -> Floats:
        """Optimus' steps to come per epoch, counted from the end of that epoch; 1 in the last."""
        steps = np.array([self.training.iterations(batch, epoch) for epoch in range(self.training.epochs)])
        left: Floats = steps[-1] - steps
        left[-1] = 1.0
        return left


class PolluxJob(TrainedJob):
    """A job as the trace describes it, and where it stands; one that `learns` adapts its batch, by a model fitted to its speeds."""

    fit: Fit  # the run's own, which knows equal measurements

    def __init__(self, row: int, submit: float, application: PolluxApplication, asked: int, batch: float, learns: bool) -> None:
        super().__init__(application.training)
        self.row, self.submit, self.application = row, submit, application
        self.asked, self.batch, self.learns = asked, batch, learns  # devices, and examples in all
        self.pinned = PINNED.get(application.name, 0.0)  # total batch of a job that always gets one device; 0: it is not pinned
        self.fixed_batch = self.pinned if learns else batch
        self.slowed = 1.0  # the part of its speed that interference leaves
        self.most = 0  # devices that it has run on
        self.fitted: Floats | None = None
        self.rows: dict[tuple[int, int, int], list[float]] = {}
        """Measured speeds by nodes, devices and local batch, as `Observations` has them."""

    @property
    def model(self) -> Floats | None:
        return self.fitted

    @property
    def batch_limits(self) -> Floats:
        return self.application.row

    def measure(self) -> tuple[float, float]:
        """A speed that was not seen yet on so many nodes and devices with this batch is remembered, and the model fitted to all of them."""
        step, sync = self.application.times.seconds(self.shape, max(self.local, self.application.limits.local_least))
        key = len(self.shape), sum(self.shape), self.local
        if self.learns and key not in self.rows:
            self.rows[key] = [*key, math.log(max(step - sync, 1e-8)), math.log(step)]
            self.most = max(self.most, sum(self.shape))
            self.fitted = self.fit(np.array(list(self.rows.values())))
        return step, sync

    def rate(self) -> float:
        return super().rate() * self.slowed
