"""One job of Sia's simulator between two rounds: it restarts, trains epoch by epoch, reports rows and chooses its batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.batch import ACCUMULATION, GOODPUT, LOCAL, choose_batch, gain, split
from gantline.models.goodput.measured import Application, Shape, Training
from gantline.systems.sia.imitation.beliefs import Fitter, SiaBelief
from gantline.systems.sia.imitation.measured_types import MeasuredType

Kind = Literal["adaptive", "strong-scaling", "rigid", "hybrid"]
_OUT = np.zeros(3)


@dataclass(frozen=True, slots=True)
class Request:
    """A job as the trace describes it."""

    row: int
    name: str
    submit: float
    application: str
    kind: Kind
    gpus: int  # asked for: what rigid jobs get and strong-scaling jobs get at most
    batch: float  # asked for; 0: none given
    weight: float = 1.0
    only: str = ""  # the one GPU type that it may have
    reserved: tuple[str, int] | None = None  # GPUs of a type that are kept for it


@dataclass(frozen=True, slots=True)
class Charges:
    """Seconds that a (re)start takes, those the policy reckons with, and by how much training is slower than measured."""

    restart: float
    assumed: float
    slowdown: float


class SiaJob:
    """The state of a job."""

    def __init__(
        self,
        asked: Request,
        application: Application,
        types: dict[str, MeasuredType],
        charges: Charges,
        fitter: Fitter,
        *,
        unaware: bool = False,
    ) -> None:
        """With ``unaware`` what is shown on any type goes into one belief."""
        self.asked, self.application, self.types, self.charges = asked, application, types, charges
        self.training: Training = application.training
        one = SiaBelief(fitter, application.name, "any type")
        self.beliefs = {kind: one if unaware else SiaBelief(fitter, application.name, kind) for kind in types}
        self.edges: list[float] = self.training.edges.tolist()
        self.kind, self.shape = "", ()  # type: str, Shape
        self.local, self.accumulation = 0, 0
        self.noise = (0.0, 1.0)
        self.delay = 0.0
        self.progress, self.epoch = 0.0, 0
        self.starts = 0
        self.gpu_seconds = 0.0
        self.seconds = 0.0
        self.first_start = np.nan
        self.finish = np.nan
        self._noise: dict[tuple[float, int], tuple[float, float]] = {}

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return max(self.starts - 1, 0)

    @property
    def done(self) -> bool:
        return self.finish == self.finish

    @property
    def fixed_batch(self) -> float:
        """The total batch that it always has; 0: it chooses."""
        if self.asked.kind in ("rigid", "strong-scaling"):
            return self.asked.batch or self.training.base
        return 0.0

    def limits(self, measured: MeasuredType, local_most: float, most: float) -> Floats:
        """The batches that there are, as kernels take them."""
        return np.array([self.training.base, most, measured.local_least, local_most, 0.0 if measured.hybrid else 1.0])

    # --- where it runs, and with which batch ----------------------------------------------------------------------------
    def place(self, kind: str, shape: Shape, now: float) -> bool:
        """Give it GPUs of a type, so many per node (none: it pauses); a change of either is a restart. Whether it was one."""
        if (kind, shape) == (self.kind, self.shape):
            return False
        self.kind, self.shape = (kind, shape) if shape else ("", ())
        if shape:
            self.first_start = now if self.starts == 0 else self.first_start
            self.starts += 1
            self.delay = self.charges.restart
            self.choose_batch()
        return bool(shape)

    def choose_batch(self) -> None:
        """Local batch and accumulation for where it is: the best by its model, the least one while it has none on this type."""
        measured, gpus = self.types[self.kind], sum(self.shape)
        replicas = gpus // measured.unit
        limits = self.limits(measured, measured.job_most(self.shape), self.training.most)
        parameters = self.beliefs[self.kind].parameters
        _OUT[GOODPUT] = 0.0
        if parameters is not None and not self.fixed_batch:
            choose_batch(parameters, *self.noise, len(self.shape), replicas, limits, _OUT)
        if not _OUT[GOODPUT] > 0.0:
            split(self.fixed_batch or max(self.training.base, measured.local_least * replicas), replicas, limits, _OUT)
        steps = int(_OUT[ACCUMULATION])
        local = measured.clipped(float(_OUT[LOCAL]), gpus)
        most = self.training.most // (replicas * (steps + 1))
        self.local, self.accumulation = max(int(min(local, most)), 1), steps

    # --- time -----------------------------------------------------------------------------------------------------------
    def advance(self, now: float, seconds: float) -> None:
        """Let it run for so many seconds from ``now`` on, or to its end."""
        if not self.shape:
            return
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
        if self.done:
            self.kind, self.shape = "", ()

    def _segment(self, seconds: float) -> float:
        """Train to the end of the epoch or of the time left; whole seconds at an epoch's end, as the artifact counts."""
        rate, edge = self._rate(), self.edges[self.epoch]
        if self.progress + rate * seconds < edge:
            self.progress += rate * seconds
            return seconds
        needed = float(round((edge - self.progress) / rate))
        self.progress = edge
        self.epoch += 1
        return needed

    def _rate(self) -> float:
        """Progress a second as measured; what is seen goes into the belief."""
        measured, shape = self.types[self.kind], self.shape
        replicas = sum(shape) // measured.unit
        step, sync = measured.times(shape, self.local)
        total = replicas * self.local * (self.accumulation + 1)
        self.noise = self._noise_at(float(total))
        if self.asked.kind != "rigid":  # beliefs about rigid jobs are never read
            self.beliefs[self.kind].observe(len(shape), replicas, self.local, step, sync)
        worth = gain(*self.noise, total / self.training.base)
        return float(worth / (step + self.accumulation * (step - sync)) / self.charges.slowdown)

    def _noise_at(self, total: float) -> tuple[float, float]:
        key = total, self.epoch
        if key not in self._noise:
            self._noise[key] = self.training.noise(total, self.epoch)
        return self._noise[key]
