"""Sorting numbers inside compiled functions. NumPy's sort compiles into ten times as much code, because it knows every type."""

from __future__ import annotations

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel

_RUN = 16  # up to so many are sorted by moving each to its place


@kernel
def stable_sort(items: Ints, keys: Floats | Ints, spare: Ints) -> None:
    """Sort items by the keys that they name; those with equal keys stay in the order they have. `spare` is at least as long as `items`.

    A merge sort from the bottom up. What is in order already is only looked at.
    """
    for low in range(0, items.size, _RUN):
        for i in range(low + 1, min(low + _RUN, items.size)):
            item, at = items[i], i
            while at > low and keys[items[at - 1]] > keys[item]:
                items[at] = items[at - 1]
                at -= 1
            items[at] = item
    width = _RUN
    while width < items.size:
        for low in range(0, items.size - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, items.size)
            if keys[items[middle - 1]] <= keys[items[middle]]:
                continue
            for k in range(low, middle):
                spare[k] = items[k]
            left, right, k = low, middle, low
            while left < middle:
                if right < high and keys[items[right]] < keys[spare[left]]:
                    items[k] = items[right]
                    right += 1
                else:
                    items[k] = spare[left]
                    left += 1
                k += 1
        width *= 2


@kernel
def stable_order(keys: Ints, first: int, count: int, order: Ints, spare: Ints) -> None:
    """Write where the smallest of ``keys[first:first + count]`` stands, then the next, counted from `first`; equal ones as they stand."""
    for i in range(count):
        order[i] = i
    stable_sort(order[:count], keys[first : first + count], spare)
