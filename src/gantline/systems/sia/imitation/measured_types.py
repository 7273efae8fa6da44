"""An application on one GPU type as Sia's simulator sees it: measured times, and which local batches a job or the policy considers.

What a job does and what the policy assumes differ: a job may use what was measured for its very placement, the policy what was measured for
any placement of the type. Hybrid parallel jobs are replicas of a pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping

from gantline.models.goodput.measured import MICRO_BATCHES, Application, Pipeline, Shape, StepTimes, least_rotation

#: What the artifact's policy reckons with in place of the largest measured local batch.
POLICY_MOST: Mapping[tuple[str, str], float] = {("deepspeech2", "rtx"): 57.0}


class MeasuredType:
    """Measured times of an application on a GPU type, looked up once for each shape and local batch."""

    def __init__(self, application: Application, kind: str, *, hybrid: bool, stages: int = 0) -> None:
        self.kind, self.hybrid = kind, hybrid
        self._times: StepTimes = application.on(kind)
        self._known: dict[tuple[Shape, int], tuple[float, float]] = {}
        self._job_most: dict[Shape, float] = {}
        self._pipeline = Pipeline.measured(self._times, stages) if hybrid else None
        self.unit = 1 if self._pipeline is None else self._pipeline.stages
        self._most_by_gpus: dict[int, float] = {}
        for shape, rows in self._times.placements.items():
            self._most_by_gpus[sum(shape)] = max(self._most_by_gpus.get(sum(shape), 0.0), float(rows[-1, 0]))
        least, most = self._times.local_least, self._times.local_most
        self.local_least, self.local_most = (float(MICRO_BATCHES),) * 2 if hybrid else (least, most)
        self.policy_most = POLICY_MOST.get((application.name, kind), self.local_most)
        self.single = self._single_speed()

    def _single_speed(self) -> float:
        """Samples a second of one replica: its largest local batch over its longest step."""
        if self._pipeline is not None:
            return self._pipeline.single
        rows = self._times.placements.get((1,))
        if rows is None:
            return self.local_most / self.times((1,), int(self.local_most))[0]
        return float(rows[:, 0].max() / rows[:, 1].max())

    def times(self, shape: Shape, local: int) -> tuple[float, float]:
        """Seconds of a step with a local batch on so many GPUs per node, and those of averaging in it."""
        if self._pipeline is not None:
            return self._pipeline.seconds(shape, local)
        found = self._known.get((shape, local))
        if found is None:
            step, sync = (float(each[0]) for each in self._times.lookup(shape, local))
            found = self._known[shape, local] = step, min(sync, 0.999 * step)  # something is left for computing
        return found

    def job_most(self, shape: Shape) -> float:
        """The largest local batch of a job on this shape: that of its rows, or of scalability rows at least as large."""
        if self.hybrid:
            return self.local_most
        found = self._job_most.get(shape)
        if found is None:
            rows, wide = self._times.placements.get(least_rotation(shape)), self._times.scalability
            wide = wide[(wide[:, 0] >= len(shape)) & (wide[:, 1] >= sum(shape))]
            if rows is not None:
                found = float(rows[-1, 0])
            else:
                found = float(wide[:, 2].max()) if len(wide) else self.local_most
            self._job_most[shape] = found
        return found

    def clipped(self, local: float, gpus: int) -> float:
        """No local batch above what was measured with that many GPUs."""
        return local if self.hybrid else min(local, self._most_by_gpus.get(gpus, local))
