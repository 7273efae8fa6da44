"""Fresh arrays inside compiled functions that may allocate.

NumPy's `zeros`, `ones`, `full` and `empty` bring several functions of Numba's along for every shape, number type and way to write it down:
forty in one decision of AlloX'. These are a handful, and short.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled_from_zero as compiled


@compiled
def ints(count: int, value: int | np.int64) -> Ints:
    """So many times this number."""
    made = np.empty(count, np.int64)
    for i in range(count):
        made[i] = value
    return made


@compiled
def floats(count: int, value: float) -> Floats:
    """So many times this number."""
    made = np.empty(count, np.float64)
    for i in range(count):
        made[i] = value
    return made


@compiled
def flags(count: int) -> Bools:
    """So many flags, none of them set."""
    made = np.empty(count, np.bool_)
    for i in range(count):
        made[i] = False
    return made


@compiled
def int_table(rows: int, columns: int, value: int) -> Ints:
    """A table of this number."""
    made = np.empty((rows, columns), np.int64)
    for i in range(rows):
        for j in range(columns):
            made[i, j] = value
    return made


@compiled
def float_table(rows: int, columns: int, value: float) -> Floats:
    """A table of this number."""
    made = np.empty((rows, columns), np.float64)
    for i in range(rows):
        for j in range(columns):
            made[i, j] = value
    return made
