"""Random numbers inside kernels: splitmix64, whose state is one word that the caller keeps."""

from __future__ import annotations

from typing import Final

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.solvers.allocation_search.words import Words

STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT: Final = 1.0 / (1 << 53)


@kernel
def mixed(z: np.uint64) -> np.uint64:
    """A word whose bits all depend on all bits of another."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@kernel
def word(state: Words) -> np.uint64:
    """A random word."""
    state[0] += STEP
    return mixed(state[0])


@kernel
def uniform(state: Words) -> float:
    """A number from 0 up to 1."""
    state[0] += STEP
    return float(np.int64(mixed(state[0]) >> _11)) * _UNIT


@kernel
def below(state: Words, count: int) -> int:
    """A whole number below ``count``."""
    return int(uniform(state) * count)


@kernel
def shuffle(state: Words, numbers: Ints, count: int) -> None:
    """Put the first ``count`` numbers into a random order."""
    for i in range(count - 1, 0, -1):
        j = below(state, i + 1)
        numbers[i], numbers[j] = numbers[j], numbers[i]
