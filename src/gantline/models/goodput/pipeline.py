"""Hybrid parallel jobs: replicas of a pipeline, each on so many devices as it has stages (as in Sia, SOSP 2023).

What was measured is the forward pass of one micro-batch through a stage, and the averaging over replicas. A step has a fixed number of
micro-batches, each of which goes forward once and backward for about twice as long; stages fill and drain at its ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gantline.models.goodput.measured import Shape, StepTimes

MICRO_BATCHES: Final = 48  # of one sample each: the only pipeline that was measured
_MOST_SYNC: Final = 0.999  # of a step: something is left for computing


@dataclass(frozen=True)
class Pipeline:
    """Seconds of a pipeline's steps on one device type; a replica always has the same local batch."""

    times: StepTimes
    stages: int
    local_least: float = float(MICRO_BATCHES)
    local_most: float = float(MICRO_BATCHES)
    _looked_up: dict[Shape, tuple[float, float]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def measured(cls, times: StepTimes, stages: int = 0) -> Pipeline:
        """With so many stages, or as many as the smallest placement that was measured has devices."""
        return cls(times, stages or min(map(sum, times.placements)))

    @property
    def single(self) -> float:
        """Examples a second of one replica, on as few nodes as were measured."""
        alone = min((shape for shape in self.times.placements if sum(shape) == self.stages), key=len, default=(self.stages,))
        return MICRO_BATCHES / self.seconds(alone, MICRO_BATCHES)[0]

    def seconds(self, shape: Shape, local: float) -> tuple[float, float]:
        """Seconds of a step and of averaging in it on so many devices per node."""
        found = self._looked_up.get(shape)
        if found is None:
            forward, sync = (float(each[0]) for each in self.times.lookup(shape, 1))
            step = 3.0 * (self.stages - 1 + MICRO_BATCHES) * forward + sync
            found = self._looked_up[shape] = step, min(sync, _MOST_SYNC * step)
        return found
