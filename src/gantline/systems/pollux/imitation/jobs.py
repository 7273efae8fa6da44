"""The jobs of Pollux' simulator: applications as they were measured, and how a job trains between two decisions.

A job waits for its restart delay, then trains in segments that end with an epoch or with the interval. At the end of an epoch the
segment's length is rounded to whole seconds while the progress is exact, and the batch is chosen anew after every segment.

Two applications have rules of their own in the original: yolov3 never has more than 8 examples on a device, and ncf always runs on one
device with a batch of 32,768.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.batch import ACCUMULATION, BASE, GOODPUT, LOCAL, BatchLimits, choose_batch, cut, gain, split
from gantline.models.goodput.measured import Application, Shape, packed_shape

RESTART: Final = 30.0  # seconds that a start or a restart takes
LOCAL_MOST: Final = {"yolov3": 8.0}
PINNED: Final = {"ncf": 32768.0}  # total batch of applications that get one device
OPTIMUS_NODE: Final = 4  # devices of a node as Optimus' oracle packs them, on smaller nodes too; the original has no larger ones

Nodes = tuple[int, ...]  # the node of each device
Fit = Callable[[Floats], Floats]  # from measurements to the parameters of a model
_OUT = np.zeros(3)


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
        self.edges: list[float] = self.training.edges.tolist()

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


@dataclass(eq=False)
class PolluxJob:
    """A job as the trace describes it, and where it stands."""

    row: int
    submit: float
    application: PolluxApplication
    asked: int  # devices
    batch: float  # in all
    learns: bool  # whether its batch adapts, by models fitted to its speeds
    shape: Shape = ()
    local: float = 0.0
    steps: float = 0.0  # of accumulation
    noise: tuple[float, float] = (0.0, 1.0)
    delay: float = 0.0
    progress: float = 0.0
    epoch: int = 0
    starts: int = 0
    service: float = 0.0  # GPU-seconds
    seconds: float = 0.0
    first_start: float = math.nan
    finish: float = math.nan
    most: int = 0  # devices that it has run on
    model: Floats | None = None
    rows: dict[tuple[int, int, float], list[float]] = field(default_factory=dict)
    """Measured speeds by nodes, devices and local batch, as `Observations` has them."""

    @property
    def pinned(self) -> float:
        """The total batch of a job that always gets one device; 0: it is not pinned."""
        return PINNED.get(self.application.name, 0.0)

    @property
    def restarts(self) -> int:
        return max(self.starts - 1, 0)

    def place(self, shape: Shape, now: float) -> None:
        """Start on these devices, or pause where there are none."""
        self.shape = shape
        if shape:
            self.first_start = self.first_start if self.starts else now
            self.starts += 1
            self.delay = RESTART
            self.choose_batch()

    def choose_batch(self) -> None:
        """Choose local batch and accumulation for the job's placement: what was asked for, or the best by its model."""
        limits, devices, wanted = self.application.row, sum(self.shape), self.pinned if self.learns else self.batch
        _OUT[GOODPUT] = 0.0
        if self.model is not None and not wanted:
            choose_batch(self.model, *self.noise, len(self.shape), devices, limits, _OUT)
            cut(devices, limits, _OUT)
        if not _OUT[GOODPUT] > 0.0:
            split(wanted or max(limits[BASE], self.application.limits.local_least * devices), devices, limits, _OUT)
        self.local, self.steps = float(_OUT[LOCAL]), float(_OUT[ACCUMULATION])

    def advance(self, interval: float, end: float, slowed: float, fit: Fit) -> None:
        """Train for an interval that ends then, or to the job's end; `slowed` is the part of its speed that it has."""
        application, devices = self.application, sum(self.shape)
        burnt = min(self.delay, interval)
        self.delay -= burnt
        left, worked = interval - burnt, burnt
        while left > 0.0 and self.epoch < len(application.edges):
            step, sync = application.times.seconds(self.shape, max(self.local, application.limits.local_least))
            if self.learns:
                self._observe(step, sync, fit)
            total = devices * self.local * (self.steps + 1.0)
            self.noise = application.training.noise(total, self.epoch)
            rate = gain(*self.noise, total / application.limits.base) / (step + self.steps * (step - sync)) * slowed
            edge, used = application.edges[self.epoch], left
            if self.progress + rate * used < edge:
                self.progress += rate * used
                left = 0.0
            else:
                used = float(round((edge - self.progress) / rate))
                self.progress = edge
                left -= used
                self.epoch += 1
                if self.epoch == len(application.edges):
                    self.finish = end - left
            worked += used
            self.choose_batch()
        self.service += devices * worked
        self.seconds += worked

    def _observe(self, step: float, sync: float, fit: Fit) -> None:
        """Remember a speed that was not seen yet on so many nodes and devices with this batch, and fit the model to all of them."""
        key = len(self.shape), sum(self.shape), self.local
        if key not in self.rows:
            self.rows[key] = [*key, math.log(max(step - sync, 1e-8)), math.log(step)]
            self.most = max(self.most, sum(self.shape))
            self.model = fit(np.array(list(self.rows.values())))
