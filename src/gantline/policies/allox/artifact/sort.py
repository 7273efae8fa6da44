"""The comparisons of Java's list sort, in order, because AlloXPlus' comparison is not transitive.

With a consistent comparison every stable sort gives the same list. AlloXPlus compares differences cut to whole seconds, so its
order depends on which pairs the sort happens to compare: natural runs, extended to a least length by binary insertion, merged
pairwise with galloping (T. Peters' list sort, 2002, as Java 7 and later use it for lists).

Items are pairs: ``2 x task + device``. `BROKEN` comes back where Java would refuse a comparison that contradicts itself.
"""

from __future__ import annotations

import numpy as np

from gantline.core.jit import kernel
from gantline.policies.allox.artifact.world import World
from gantline.policies.allox.ways import Ints

SHORT = 32
GALLOP = 7
FINE, BROKEN = 0, 1
MOST_RUNS = 64

# rest: what a sort keeps beside the list, behind the runs' beginnings and lengths
_RUNS, _GALLOP = 2 * MOST_RUNS, 2 * MOST_RUNS + 1
REST = 2 * MOST_RUNS + 2


@kernel
def before(w: World, one: int, other: int, age: float) -> int:
    """Below zero if the first pair goes before the second: jobs that waited long do, then those shorter by a whole second."""
    old = w.clock[0] - w.arrival[one // 2] >= age
    if old != (w.clock[0] - w.arrival[other // 2] >= age):
        return -1 if old else 1
    return int(w.reported[one // 2, one % 2] - w.reported[other // 2, other % 2])


@kernel
def java_sort(w: World, a: Ints, age: float, first: Ints, second: Ints, rest: Ints) -> int:
    """Leave the pairs in the order in which Java's ``Collections.sort`` would; the other arrays are scratch."""
    n = a.size
    if n < 2:
        return FINE
    if n < SHORT:
        insert_from(w, a, 0, n, natural_run(w, a, 0, n, age), age)
        return FINE
    least, odd = n, 0
    while least >= SHORT:
        odd |= least & 1
        least >>= 1
    least += odd
    rest[_RUNS], rest[_GALLOP] = 0, GALLOP
    lo = 0
    while lo < n:
        length = natural_run(w, a, lo, n, age)
        if length < least:
            wanted = min(least, n - lo)
            insert_from(w, a, lo, lo + wanted, lo + length, age)
            length = wanted
        if push(w, a, lo, length, age, first, second, rest) == BROKEN:
            return BROKEN
        lo += length
    while rest[_RUNS] > 1:
        i = rest[_RUNS] - 2
        if i > 0 and rest[MOST_RUNS + i - 1] < rest[MOST_RUNS + i + 1]:
            i -= 1
        if merge(w, a, i, age, first, second, rest) == BROKEN:
            return BROKEN
    return FINE


@kernel
def natural_run(w: World, a: Ints, lo: int, hi: int, age: float) -> int:
    """Length of the run that starts at ``lo``; a strictly falling one is turned round."""
    end = lo + 1
    if end == hi:
        return 1
    falling = before(w, a[end], a[lo], age) < 0
    end += 1
    while end < hi and (before(w, a[end], a[end - 1], age) < 0) == falling:
        end += 1
    if falling:
        for i in range((end - lo) // 2):
            a[lo + i], a[end - 1 - i] = a[end - 1 - i], a[lo + i]
    return end - lo


@kernel
def insert_from(w: World, a: Ints, lo: int, hi: int, start: int, age: float) -> None:
    """Binary insertion of ``a[start:hi]`` into the sorted ``a[lo:start]``."""
    for i in range(start, hi):
        pivot = a[i]
        left, right = lo, i
        while left < right:
            middle = (left + right) >> 1
            if before(w, pivot, a[middle], age) < 0:
                right = middle
            else:
                left = middle + 1
        for k in range(i, left, -1):
            a[k] = a[k - 1]
        a[left] = pivot


@kernel
def push(w: World, a: Ints, lo: int, length: int, age: float, first: Ints, second: Ints, rest: Ints) -> int:
    """Add a run, and merge neighbours so that their lengths stay balanced."""
    size = rest[MOST_RUNS : 2 * MOST_RUNS]
    rest[rest[_RUNS]], size[rest[_RUNS]] = lo, length
    rest[_RUNS] += 1
    while rest[_RUNS] > 1:
        n = rest[_RUNS] - 2
        if (n > 0 and size[n - 1] <= size[n] + size[n + 1]) or (n > 1 and size[n - 2] <= size[n] + size[n - 1]):
            n = n - 1 if size[n - 1] < size[n + 1] else n
        elif size[n] > size[n + 1]:
            return FINE
        if merge(w, a, n, age, first, second, rest) == BROKEN:
            return BROKEN
    return FINE


@kernel
def merge(w: World, a: Ints, i: int, age: float, first: Ints, second: Ints, rest: Ints) -> int:
    """Merge the i-th run with the next."""
    size = rest[MOST_RUNS : 2 * MOST_RUNS]
    lo, n, mid, m = rest[i], size[i], rest[i + 1], size[i + 1]
    size[i] = n + m
    for k in range(i + 1, rest[_RUNS] - 1):
        rest[k], size[k] = rest[k + 1], size[k + 1]
    rest[_RUNS] -= 1
    skip = gallop(w, a[mid], a[lo:mid], 0, age, True)
    lo, n = lo + skip, n - skip
    if n == 0:
        return FINE
    m = gallop(w, a[mid - 1], a[mid : mid + m], m - 1, age, False)
    if m == 0:
        return FINE
    for k in range(n):
        first[k] = a[lo + k]
    for k in range(m):
        second[k] = a[mid + k]
    if n <= m:
        return merge_forwards(w, a[lo : lo + n + m], first[:n], second[:m], age, rest)
    return merge_backwards(w, a[lo : lo + n + m], first[:n], second[:m], age, rest)


@kernel
def merge_forwards(w: World, out: Ints, first: Ints, second: Ints, age: float, rest: Ints) -> int:
    """Merge from the left; the second run is known to begin first and the first run to end last."""
    n, m = first.size, second.size
    out[0] = second[0]
    i, j = 0, 1
    gallop_at = rest[_GALLOP]
    done = j == m or n == 1
    while not done:
        wins = losses = 0
        while True:
            if before(w, second[j], first[i], age) < 0:
                out[i + j] = second[j]
                j, losses, wins = j + 1, losses + 1, 0
                done = j == m
            else:
                out[i + j] = first[i]
                i, wins, losses = i + 1, wins + 1, 0
                done = i == n - 1
            if done or max(wins, losses) >= gallop_at:
                break
        while not done:
            count1 = gallop(w, second[j], first[i:], 0, age, True)
            for _ in range(count1):
                out[i + j] = first[i]
                i += 1
            if count1 > 0 and i >= n - 1:
                done = True
                break
            out[i + j] = second[j]
            j += 1
            if j == m:
                done = True
                break
            count2 = gallop(w, first[i], second[j:], 0, age, False)
            for _ in range(count2):
                out[i + j] = second[j]
                j += 1
            if count2 > 0 and j == m:
                done = True
                break
            out[i + j] = first[i]
            i += 1
            if i == n - 1:
                done = True
                break
            gallop_at -= 1
            if count1 < GALLOP and count2 < GALLOP:
                gallop_at = max(gallop_at, 0) + 2
                break
    rest[_GALLOP] = max(gallop_at, 1)
    if i == n:
        return BROKEN
    while j < m:
        out[i + j] = second[j]
        j += 1
    while i < n:
        out[i + j] = first[i]
        i += 1
    return FINE


@kernel
def merge_backwards(w: World, out: Ints, first: Ints, second: Ints, age: float, rest: Ints) -> int:
    """Merge from the right, the mirror image."""
    i, j = first.size - 1, second.size - 1
    out[i + j + 1] = first[i]
    i -= 1
    gallop_at = rest[_GALLOP]
    done = i < 0 or j == 0
    while not done:
        wins = losses = 0
        while True:
            if before(w, second[j], first[i], age) < 0:
                out[i + j + 1] = first[i]
                i, wins, losses = i - 1, wins + 1, 0
                done = i < 0
            else:
                out[i + j + 1] = second[j]
                j, losses, wins = j - 1, losses + 1, 0
                done = j == 0
            if done or max(wins, losses) >= gallop_at:
                break
        while not done:
            count1 = i + 1 - gallop(w, second[j], first[: i + 1], i, age, True)
            for _ in range(count1):
                out[i + j + 1] = first[i]
                i -= 1
            if count1 > 0 and i < 0:
                done = True
                break
            out[i + j + 1] = second[j]
            j -= 1
            if j == 0:
                done = True
                break
            count2 = j + 1 - gallop(w, first[i], second[: j + 1], j, age, False)
            for _ in range(count2):
                out[i + j + 1] = second[j]
                j -= 1
            if count2 > 0 and j <= 0:
                done = True
                break
            out[i + j + 1] = first[i]
            i -= 1
            if i < 0:
                done = True
                break
            gallop_at -= 1
            if count1 < GALLOP and count2 < GALLOP:
                gallop_at = max(gallop_at, 0) + 2
                break
    rest[_GALLOP] = max(gallop_at, 1)
    if j < 0:
        return BROKEN
    for k in range(i, -1, -1):
        out[j + 1 + k] = first[k]
    for k in range(j, -1, -1):
        out[k] = second[k]
    return FINE


@kernel
def gallop(w: World, key: int, a: Ints, hint: int, age: float, right: bool) -> int:
    """Where ``key`` belongs in ``a`` (after equals if ``right``), by doubling steps from ``hint``, then bisection."""
    last, step = 0, 1
    if goes_before(w, key, a[hint], age, right):
        while step < hint + 1 and goes_before(w, key, a[hint - step], age, right):
            last, step = step, 2 * step + 1
        lo, hi = hint - min(step, hint + 1), hint - last
    else:
        while step < a.size - hint and not goes_before(w, key, a[hint + step], age, right):
            last, step = step, 2 * step + 1
        lo, hi = hint + last, hint + min(step, a.size - hint)
    lo += 1
    while lo < hi:
        middle = lo + ((hi - lo) >> 1)
        if goes_before(w, key, a[middle], age, right):
            hi = middle
        else:
            lo = middle + 1
    return hi


@kernel
def goes_before(w: World, key: int, item: int, age: float, right: bool) -> bool:
    """Whether the key belongs somewhere before this item."""
    return before(w, key, item, age) < 0 if right else before(w, item, key, age) >= 0


def scratch() -> Ints:
    """Room for what a sort keeps beside the list."""
    return np.zeros(REST, dtype=np.int64)
