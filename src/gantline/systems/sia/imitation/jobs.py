"""One job of Sia's simulator: what was measured of its application, what the scheduler believes of it, and how it trains between two
rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.fit import fit, fit_like_artifact
from gantline.models.goodput.measured import MICRO_BATCHES, Application, Pipeline, Shape, StepTimes, least_rotation
from gantline.models.goodput.speed_model import Observations, SpeedModel, step_time
from gantline.models.goodput.trained_job import TrainedJob

# An application on one GPU type as Sia's simulator sees it: measured times, and which local batches a job or the policy considers.
#
# What a job does and what the policy assumes differ: a job may use what was measured for its very placement, the policy
# what was measured for any placement of the type. Hybrid parallel jobs are replicas of a pipeline.


#: What the artifact's policy reckons with in place of the largest measured local batch.
POLICY_MOST: Mapping[tuple[str, str], float] = {("deepspeech2", "rtx"): 57.0}


class MeasuredType:
    """Measured times of an application on a GPU type; those of a hybrid parallel job are of a pipeline of so many stages."""

    def __init__(self, application: Application, kind: str, *, hybrid: bool, stages: int = 0) -> None:
        self.kind, self.hybrid = kind, hybrid
        self._times: StepTimes = application.on(kind)
        pipeline = Pipeline.measured(self._times, stages) if hybrid else None
        self.times = (pipeline or self._times).seconds
        self.unit, self.single = (pipeline.stages, pipeline.single) if pipeline else (1, self._times.single)
        self._most_by_gpus: dict[int, float] = {}
        for shape, rows in self._times.placements.items():
            self._most_by_gpus[sum(shape)] = max(self._most_by_gpus.get(sum(shape), 0.0), float(rows[-1, 0]))
        least, most = self._times.local_least, self._times.local_most
        self.local_least, self.local_most = (float(MICRO_BATCHES),) * 2 if hybrid else (least, most)
        self.policy_most = POLICY_MOST.get((application.name, kind), self.local_most)

    def job_most(self, shape: Shape) -> float:
        """The largest local batch of a job on this shape: that of its rows, or of scalability rows at least as large."""
        if self.hybrid:
            return self.local_most
        rows, wide = self._times.placements.get(least_rotation(shape)), self._times.scalability
        if rows is not None:
            return float(rows[-1, 0])
        wide = wide[(wide[:, 0] >= len(shape)) & (wide[:, 1] >= sum(shape))]
        return float(wide[:, 2].max()) if len(wide) else self.local_most

    def clipped(self, local: float, gpus: int) -> float:
        """No local batch above what was measured with that many GPUs."""
        return local if self.hybrid else min(local, self._most_by_gpus.get(gpus, local))


# What the scheduler believes of one job's speed on one GPU type: rows that the job has shown, and the model fitted to them.
#
# A row is added the first time that a job runs with so many nodes, replicas and samples per GPU, and the model is
# fitted again at once. How far the model before it was off is kept: the error of the belief. Jobs of one application
# that have shown the same rows have the same model.

Row = tuple[float, float, float, float, float]
_ARTIFACT_TOLERANCE = 1e-5

FITS: dict[str, Callable[[Observations], SpeedModel]] = {
    "artifact": lambda seen: fit_like_artifact(seen, _ARTIFACT_TOLERANCE),
    "compiled": fit,
}


@dataclass
class Fitter:
    """Models by what they are fitted to, and how far they were off."""

    method: str = "artifact"
    models: dict[tuple[str, str, tuple[Row, ...]], Floats] = field(default_factory=dict)
    errors: list[float] = field(default_factory=list)  # |predicted / measured - 1| of the step at a row that is new
    asked: int = 0

    def model(self, application: str, kind: str, rows: tuple[Row, ...]) -> Floats:
        """The seven parameters fitted to the rows, in the order in which they were seen."""
        self.asked += 1
        key = application, kind, rows
        found = self.models.get(key)
        if found is None:
            found = self.models[key] = FITS[self.method](Observations.of(rows)).parameters
        return found

    def summary(self) -> dict[str, object]:
        """How many fits, and how wrong beliefs were before each new row."""
        errors = np.array(self.errors)
        return {
            "fits": len(self.models),
            "fits_asked": self.asked,
            "belief_errors": len(errors),
            "belief_error_mean": float(errors.mean()) if len(errors) else None,
            "belief_error_median": float(np.median(errors)) if len(errors) else None,
            "belief_error_p95": float(np.percentile(errors, 95)) if len(errors) else None,
        }


class SiaBelief:
    """Rows and model of one job on one GPU type."""

    def __init__(self, fitter: Fitter, application: str, kind: str) -> None:
        self._fitter, self._name = fitter, (application, kind)
        self._rows: dict[tuple[int, int, int], Row] = {}
        self.parameters: Floats | None = None
        self.most_replicas = 0

    def observe(self, nodes: int, replicas: int, local: int, step: float, sync: float) -> None:
        """A step as it was measured; a row that is new changes the model."""
        key = nodes, replicas, local
        if key in self._rows:
            return
        if self.parameters is not None:
            self._fitter.errors.append(abs(step_time(self.parameters, *key, 0) / step - 1.0))
        self._rows[key] = float(nodes), float(replicas), float(local), step - sync, step
        self.most_replicas = max(self.most_replicas, replicas)
        self.parameters = self._fitter.model(*self._name, tuple(self._rows.values()))


# One job of Sia's simulator between two rounds: it restarts, trains epoch by epoch, reports rows and chooses its batch.

Kind = Literal["adaptive", "strong-scaling", "rigid", "hybrid"]


@dataclass(frozen=True, slots=True)
class SiaRequest:
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


class SiaJob(TrainedJob):
    """The state of a job."""

    def __init__(
        self,
        asked: SiaRequest,
        application: Application,
        types: dict[str, MeasuredType],
        charges: Charges,
        fitter: Fitter,
        *,
        unaware: bool = False,
    ) -> None:
        """With ``unaware`` what is shown on any type goes into one belief."""
        super().__init__(application.training)
        self.asked, self.application, self.types, self.charges = asked, application, types, charges
        one = SiaBelief(fitter, application.name, "any type")
        self.beliefs = {kind: one if unaware else SiaBelief(fitter, application.name, kind) for kind in types}
        self.kind = ""
        fixed = asked.kind in ("rigid", "strong-scaling")
        self.fixed_batch = (asked.batch or self.training.base) if fixed else 0.0

    @property
    def replicas(self) -> int:
        return sum(self.shape) // self.types[self.kind].unit

    @property
    def model(self) -> Floats | None:
        return self.beliefs[self.kind].parameters

    @property
    def batch_limits(self) -> Floats:
        measured = self.types[self.kind]
        return self.limits(measured, measured.job_most(self.shape), self.training.most)

    def limits(self, measured: MeasuredType, local_most: float, most: float) -> Floats:
        """The batches that there are, as kernels take them."""
        return np.array([self.training.base, most, measured.local_least, local_most, 0.0 if measured.hybrid else 1.0])

    def clipped(self, local: float) -> float:
        return self.types[self.kind].clipped(local, sum(self.shape))

    def place(self, kind: str, shape: Shape, now: float) -> bool:
        """Give it GPUs of a type, so many per node (none: it pauses); a change of either is a restart. Whether it was one."""
        if (kind, shape) == (self.kind, self.shape):
            return False
        self.kind, self.shape = (kind, shape) if shape else ("", ())
        if shape:
            self.start(shape, now, self.charges.restart)
        return bool(shape)

    def advance(self, now: float, seconds: float) -> None:
        if self.shape:
            super().advance(now, seconds)
        if self.done:
            self.kind, self.shape = "", ()

    def measure(self) -> tuple[float, float]:
        step, sync = self.types[self.kind].times(self.shape, self.local)
        if self.asked.kind != "rigid":  # beliefs about rigid jobs are never read
            self.beliefs[self.kind].observe(len(self.shape), self.replicas, self.local, step, sync)
        return step, sync

    def rate(self) -> float:
        return super().rate() / self.charges.slowdown


# What Sia's simulator charges for a (re)start, what its policy believes that to cost, and a slowdown fitted to its authors' cluster.

_OTHER = Charges(restart=30.0, assumed=30.0, slowdown=1.0)

_KNOWN: Mapping[str, Charges] = {
    "cifar10": Charges(50.0, 30.0, 1.8),
    "deepspeech2": Charges(25.0, 25.0, 1.2),
    "bert": Charges(120.0, 120.0, 1.2),
    "yolov3": Charges(80.0, 45.0, 1.2),
    "imagenet": Charges(250.0, 250.0, 1.2),
    "ncf": Charges(15.0, 30.0, 1.5),
}


def charges_of(application: str, assumed: float) -> Charges:
    """The charges for an application; one that the artifact does not know is not slower than measured."""
    return _KNOWN.get(application, Charges(_OTHER.restart, assumed, _OTHER.slowdown))
