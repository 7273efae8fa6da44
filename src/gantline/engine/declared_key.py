"""A key as a sum over columns: what compiled loops on records take, and the order of its coefficients in kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.constants import Constants


class Coefficient(Constants):
    """The order of a declared key's coefficients in kernels."""

    ARRIVAL, ATTAINED, ATTAINED_GPU, REMAINING, REMAINING_GPU, ESTIMATE = range(6)
    GPUS, PRIORITY, FIRST_START, BY_GPU, MOVES, LEVEL_STEP, NEVER_STARTED = range(6, 13)


@dataclass(frozen=True)
class LinearKey:
    """A sum over columns, of which order, crossing times and the whole loop follow. It is read from a policy's `key()`.

    With `thresholds` the key has a level in front: the number of thresholds that `level_by` has reached (Tiresias' queues).
    """

    arrival: float = 0.0
    attained: float = 0.0  # seconds run
    attained_gpu: float = 0.0  # GPU-seconds run
    remaining: float = 0.0  # estimated remaining work
    remaining_gpu: float = 0.0  # estimated remaining work times GPUs
    estimate: float = 0.0  # estimated total work
    gpus: float = 0.0
    priority: float = 0.0
    first_start: float = 0.0  # first start, or `never_started` plus arrival (they queue behind)
    level_by: str = "attained_gpu"  # or "attained"
    thresholds: tuple[float, ...] = ()
    level_step: float = 1e12  # what a level counts
    never_started: float = 1e11  # what counts as the first start of jobs that never started, plus their arrival
    promises: float = 0.0  # backfilling: how many misfits are promised a time (EASY: 1, conservative: infinity); 0: no backfilling

    @property
    def moves(self) -> bool:
        """Whether the order of jobs can change although nothing happens."""
        return bool(self.attained or self.attained_gpu or self.remaining or self.remaining_gpu or self.thresholds)

    @property
    def rises(self) -> bool:
        """Whether jobs that run fall behind others by running."""
        return self.attained > 0.0 or self.attained_gpu > 0.0 or self.remaining < 0.0 or self.remaining_gpu < 0.0


def coefficients(key: LinearKey) -> Floats:
    """A sum as one array."""
    sums = [key.arrival, key.attained, key.attained_gpu, key.remaining, key.remaining_gpu, key.estimate, key.gpus, key.priority]
    return np.array([*sums, key.first_start, float(key.level_by == "attained_gpu"), float(key.moves), key.level_step, key.never_started])
