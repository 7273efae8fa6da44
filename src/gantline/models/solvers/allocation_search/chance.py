"""Random numbers inside kernels: splitmix64, whose state is one word that callers hand on.

The n-th number depends on the first state and n alone, so draws of a later step can be made before those of an earlier one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel

STEP: Final = np.uint64(0x9E3779B97F4A7C15)  # from one state to the next
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT: Final = 1.0 / (1 << 53)


@kernel
def mixed(z: np.uint64) -> np.uint64:
    """The random word of a state: all its bits depend on all bits of another."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@kernel
def uniform(state: np.uint64) -> float:
    """The number from 0 up to 1 of a state."""
    return float(np.int64(mixed(state) >> _11)) * _UNIT


@kernel
def shuffle(state: np.uint64, numbers: Ints, first: int, end: int) -> np.uint64:
    """Put a stretch of numbers into a random order; the state afterwards."""
    for i in range(end - 1, first, -1):
        state += STEP
        j = first + int(uniform(state) * (i - first + 1))
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return state
