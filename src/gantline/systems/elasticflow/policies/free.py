"""The free map: how many GPUs are free from each breakpoint to the next, as two arrays and a count.

The first breakpoint is now; beyond the last one the whole cluster counts as free.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel


@kernel
def up(x: float, now: float, slot: float) -> float:
    """The next slot boundary, counted from now."""
    if x == float("inf"):
        return x
    q = (x - now) / slot
    whole = float(int(q))
    if q > whole:
        whole += 1.0
    return now + whole * slot


@kernel
def ceiling(x: float) -> float:
    """The next whole number."""
    whole = float(int(x))
    return whole + 1.0 if x > whole else whole


@kernel
def in_force(t: Floats, n: int, x: float) -> int:
    """The interval that x lies in: the last breakpoint not after it."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high + 1) // 2
        if t[middle] <= x:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def put(t: Floats, v: Ints, n: int, x: float, value: int) -> int:
    """Set the value at a breakpoint, made if absent; how many there are then."""
    at = in_force(t, n, x)
    if t[at] == x:
        v[at] = value
        return n
    if t[at] < x:
        at += 1
    for k in range(n, at, -1):
        t[k], v[k] = t[k - 1], v[k - 1]
    t[at], v[at] = x, value
    return n + 1


@kernel
def canonical(t: Floats, v: Ints, n: int) -> int:
    """Drop breakpoints at which nothing changes; how many are left."""
    kept = 1
    for k in range(1, n):
        if v[k] != v[kept - 1]:
            t[kept], v[kept] = t[k], v[k]
            kept += 1
    return kept


@kernel
def gpu_seconds(at: Floats, av: Ints, count: int, end: float) -> float:
    """What a plan holds in all, its last entry until the end."""
    total = 0.0
    for k in range(count - 1):
        total += av[k] * (at[k + 1] - at[k])
    if av[count - 1] > 0:
        total += av[count - 1] * (end - at[count - 1])
    return total


@kernel
def give_back(ft: Floats, fv: Ints, fn: int, at: Floats, av: Ints, count: int, end: float, ht: Floats, hv: Ints) -> int:
    """The free map (ht, hv) as it would be without a plan that ends at `end`; how many breakpoints it has."""
    i = k = n = 0
    held = 0
    ended = False
    while i < fn or k < count or not ended:
        x = np.inf
        if i < fn:
            x = min(x, ft[i])
        if k < count:
            x = min(x, at[k])
        if not ended:
            x = min(x, end)
        while i < fn and ft[i] <= x:
            i += 1
        while k < count and at[k] <= x:
            held = av[k]
            k += 1
        if x >= end:
            ended = True
        ht[n], hv[n] = x, fv[i - 1] + (0 if ended else held)
        n += 1
    return canonical(ht, hv, n)
