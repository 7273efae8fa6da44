"""A key as a sum over columns: what compiled loops on records take, and the order of its coefficients in kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel


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


@kernel
def sum_of(
    weight: Floats,
    thresholds: Floats,
    gpus: int,
    arrival: float,
    service: float,
    gputime: float,
    remaining: float,
    estimate: float,
    priority: float,
    first_start: float,
) -> float:
    """The key of a row with these values."""
    value = 0.0
    if weight[Coefficient.ARRIVAL] != 0.0:
        value += weight[Coefficient.ARRIVAL] * arrival
    if weight[Coefficient.ATTAINED] != 0.0:
        value += weight[Coefficient.ATTAINED] * service
    if weight[Coefficient.ATTAINED_GPU] != 0.0:
        value += weight[Coefficient.ATTAINED_GPU] * gputime
    if weight[Coefficient.REMAINING] != 0.0 or weight[Coefficient.REMAINING_GPU] != 0.0:
        value += weight[Coefficient.REMAINING] * remaining
        value += weight[Coefficient.REMAINING_GPU] * (remaining * gpus)
    if weight[Coefficient.ESTIMATE] != 0.0:
        value += weight[Coefficient.ESTIMATE] * estimate
    if weight[Coefficient.GPUS] != 0.0:
        value += weight[Coefficient.GPUS] * gpus
    if weight[Coefficient.PRIORITY] != 0.0:
        value += weight[Coefficient.PRIORITY] * priority
    if weight[Coefficient.FIRST_START] != 0.0:
        never = np.isnan(first_start)
        value += weight[Coefficient.FIRST_START] * (weight[Coefficient.NEVER_STARTED] + arrival if never else first_start)
    measure = gputime if weight[Coefficient.BY_GPU] == 1.0 else service
    level = 0
    for place in range(thresholds.shape[0]):
        if measure >= thresholds[place]:
            level += 1
    return float(level * weight[Coefficient.LEVEL_STEP] + value)


@kernel
def next_threshold(weight: Floats, thresholds: Floats, gpus: int, service: float, gputime: float, since: float, ran: float) -> float:
    """When a row that has run for so long since its last change reaches its next threshold; infinity: never."""
    by_gpu = weight[Coefficient.BY_GPU] == 1.0
    speed, have = (float(gpus), gputime) if by_gpu else (1.0, service)
    for place in range(thresholds.shape[0]):
        if have + speed * ran < thresholds[place] and speed > 0.0:
            return float(since + (thresholds[place] - have) / speed)
    return np.inf
