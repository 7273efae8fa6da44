"""Sorting numbers inside compiled functions. NumPy's sort compiles into ten times as much code, because it knows every type."""

from __future__ import annotations

from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel

_RUN = 16  # up to so many are sorted by moving each to its place


@kernel
def stable_order(keys: Ints, first: int, count: int, order: Ints, spare: Ints) -> None:
    """Write where the smallest of ``keys[first:first + count]`` stands, then the next, counted from `first`; equal ones as they stand.

    A merge sort from the bottom up. `spare` is as long as `order`.
    """
    for low in range(0, count, _RUN):
        for i in range(low, min(low + _RUN, count)):
            at = i
            while at > low and keys[first + order[at - 1]] > keys[first + i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = _RUN
    while width < count:
        for low in range(0, count - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, count)
            if keys[first + order[middle - 1]] <= keys[first + order[middle]]:
                continue  # in order already
            for k in range(low, middle):
                spare[k] = order[k]
            left, right, k = low, middle, low
            while left < middle:
                if right < high and keys[first + order[right]] < keys[first + spare[left]]:
                    order[k] = order[right]
                    right += 1
                else:
                    order[k] = spare[left]
                    left += 1
                k += 1
        width *= 2
