"""Places in sorted numbers. NumPy's search compiles into a hundred times as much code, because it knows every type."""

from __future__ import annotations

from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel


@kernel
def first_not_below(values: Ints, low: int, high: int, wanted: int) -> int:
    """The first place in ``values[low:high]`` with at least the wanted number; ``high`` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_above(values: Ints, low: int, high: int, wanted: int) -> int:
    """The first place in ``values[low:high]`` with more than the wanted number; ``high`` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= wanted:
            low = middle + 1
        else:
            high = middle
    return low
