"""A job of the simulators of Pollux and Sia between two decisions: it restarts, trains epoch by epoch and chooses its batch.

It waits for its restart delay, then trains in segments that end with an epoch or with the interval. At the end of an epoch the segment's
length is rounded to whole seconds while the progress is exact, and the batch is chosen anew after every segment.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.batch import ACCUMULATION, BASE, GOODPUT, LOCAL, LOCAL_LEAST, MOST, choose_batch, gain, split
from gantline.models.goodput.measured import Shape, Training

_OUT = np.zeros(3)


class TrainedJob(ABC):
    """Where a job stands; subclasses say what is measured, what is believed, and how their original counts."""

    fixed_batch: float  # the total batch that it always has; 0: it chooses

    def __init__(self, training: Training) -> None:
        self.training = training
        self.edges: list[float] = training.edges.tolist()
        self.shape: Shape = ()
        self.local, self.accumulation = 0, 0
        self.noise = (0.0, 1.0)
        self.delay = 0.0
        self.progress, self.epoch = 0.0, 0
        self.starts = 0
        self.gpu_seconds = 0.0
        self.seconds = 0.0
        self.first_start = math.nan
        self.finish = math.nan

    @property
    @abstractmethod
    def model(self) -> Floats | None:
        """The parameters of its speed where it is, as far as they are known."""

    @property
    @abstractmethod
    def batch_limits(self) -> Floats:
        """The batches that there are where it is, as kernels take them."""

    @abstractmethod
    def measure(self) -> tuple[float, float]:
        """Seconds of a step and of the averaging in it, as measured; what is seen may change the model."""

    @property
    def replicas(self) -> int:
        return sum(self.shape)

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return max(self.starts - 1, 0)

    @property
    def done(self) -> bool:
        return not math.isnan(self.finish)

    def clipped(self, local: float) -> float:
        """A local batch cut to what is measured."""
        return local

    def start(self, shape: Shape, now: float, delay: float) -> None:
        """Go on with so many devices per node, after a delay."""
        self.first_start = self.first_start if self.starts else now
        self.shape, self.delay = shape, delay
        self.starts += 1
        self.choose_batch()

    def choose_batch(self) -> None:
        """Local batch and accumulation for where it is: the best by its model, the least one while it has none."""
        limits, replicas, model = self.batch_limits, self.replicas, self.model
        _OUT[GOODPUT] = 0.0
        if model is not None and not self.fixed_batch:
            choose_batch(model, *self.noise, len(self.shape), replicas, limits, _OUT)
        if not _OUT[GOODPUT] > 0.0:
            split(self.fixed_batch or max(limits[BASE], limits[LOCAL_LEAST] * replicas), replicas, limits, _OUT)
        steps = int(_OUT[ACCUMULATION])
        most = limits[MOST] // (replicas * (steps + 1))
        self.local, self.accumulation = max(int(min(self.clipped(float(_OUT[LOCAL])), most)), 1), steps

    def advance(self, now: float, seconds: float) -> None:
        """Let it run for so many seconds from ``now`` on, or to its end."""
        burnt = min(self.delay, seconds)
        self.delay -= burnt
        used = burnt
        while used < seconds and not self.done:
            used += self._segment(seconds - used)
            if self.epoch == len(self.edges):
                self.finish = now + used
            else:
                self.choose_batch()
        self.gpu_seconds += sum(self.shape) * used
        self.seconds += used

    def _segment(self, seconds: float) -> float:
        """Train to the end of the epoch or of the time left."""
        rate, edge = self.rate(), self.edges[self.epoch]
        if self.progress + rate * seconds < edge:
            self.progress += rate * seconds
            return seconds
        needed = float(round((edge - self.progress) / rate))
        self.progress = edge
        self.epoch += 1
        return needed

    def rate(self) -> float:
        """Progress a second as measured."""
        step, sync = self.measure()
        total = self.replicas * self.local * (self.accumulation + 1)
        self.noise = self.training.noise(total, self.epoch)
        worth = gain(*self.noise, total / self.training.base)
        return float(worth / (step + self.accumulation * (step - sync)))
