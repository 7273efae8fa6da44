"""The coefficients of a declared key, in the order in which kernels take them (see `core.policy.LinearKey`)."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.policy import LinearKey

ARRIVAL, ATTAINED, ATTAINED_GPU, REMAINING, REMAINING_GPU, ESTIMATE = range(6)
GPUS, PRIORITY, FIRST_START, BY_GPU, MOVES, LEVEL_STEP, NEVER_STARTED, COUNT = range(6, 14)


def coefficients(key: LinearKey) -> Floats:
    """A declared key as one array."""
    sums = [key.arrival, key.attained, key.attained_gpu, key.remaining, key.remaining_gpu, key.estimate, key.gpus, key.priority]
    return np.array([*sums, key.first_start, float(key.level_by == "attained_gpu"), float(key.moves), key.level_step, key.never_started])
