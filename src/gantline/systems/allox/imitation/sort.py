"""The comparisons of Java's list sort, in order, because AlloXPlus' comparison is not transitive.

With a consistent comparison every stable sort gives the same list. AlloXPlus compares differences cut to whole seconds, so its
order depends on which pairs the sort happens to compare: natural runs, extended to a least length by binary insertion, merged
pairwise with galloping (T. Peters' list sort, 2002, as Java 7 and later use it for lists).

Lists hold numbers of items; ``time`` and ``old`` are their keys. `BROKEN` comes back where Java would refuse a comparison that
contradicts itself.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

SHORT = 32
GALLOP = 7
FINE, BROKEN = 0, 1
MOST_RUNS = 64

# rest: what a sort keeps beside the list, behind the runs' beginnings and lengths
_RUNS, _GALLOP = 2 * MOST_RUNS, 2 * MOST_RUNS + 1
REST = 2 * MOST_RUNS + 2


@kernel
def before(time: Floats, old: Floats, one: int, other: int) -> int:
    """Below zero if the first item goes before the second: those that waited long do, then those shorter by a whole second."""
    if old[one] != old[other]:
        return -1 if old[one] > 0.0 else 1
    return int(time[one] - time[other])


@kernel
def java_sort(a: Ints, time: Floats, old: Floats, spare: Ints, rest: Ints) -> int:
    """Leave the items in the order in which Java's ``Collections.sort`` would; ``spare`` (as long as the list) and ``rest`` are scratch."""
    n = a.size
    if n < 2:
        return FINE
    if n < SHORT:
        insert_from(a, 0, n, natural_run(a, 0, n, time, old), time, old)
        return FINE
    least, odd = n, 0
    while least >= SHORT:
        odd |= least & 1
        least >>= 1
    least += odd
    rest[_RUNS], rest[_GALLOP] = 0, GALLOP
    lo = 0
    while lo < n:
        length = natural_run(a, lo, n, time, old)
        if length < least:
            wanted = min(least, n - lo)
            insert_from(a, lo, lo + wanted, lo + length, time, old)
            length = wanted
        if push(a, lo, length, time, old, spare, rest) == BROKEN:
            return BROKEN
        lo += length
    while rest[_RUNS] > 1:
        i = rest[_RUNS] - 2
        if i > 0 and rest[MOST_RUNS + i - 1] < rest[MOST_RUNS + i + 1]:
            i -= 1
        if merge(a, i, time, old, spare, rest) == BROKEN:
            return BROKEN
    return FINE


@kernel
def natural_run(a: Ints, lo: int, hi: int, time: Floats, old: Floats) -> int:
    """Length of the run that starts at ``lo``; a strictly falling one is turned round."""
    end = lo + 1
    if end == hi:
        return 1
    falling = before(time, old, a[end], a[lo]) < 0
    end += 1
    while end < hi and (before(time, old, a[end], a[end - 1]) < 0) == falling:
        end += 1
    if falling:
        for i in range((end - lo) // 2):
            a[lo + i], a[end - 1 - i] = a[end - 1 - i], a[lo + i]
    return end - lo


@kernel
def insert_from(a: Ints, lo: int, hi: int, start: int, time: Floats, old: Floats) -> None:
    """Binary insertion of ``a[start:hi]`` into the sorted ``a[lo:start]``."""
    for i in range(start, hi):
        pivot = a[i]
        left, right = lo, i
        while left < right:
            middle = (left + right) >> 1
            if before(time, old, pivot, a[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        for k in range(i, left, -1):
            a[k] = a[k - 1]
        a[left] = pivot


@kernel
def push(a: Ints, lo: int, length: int, time: Floats, old: Floats, spare: Ints, rest: Ints) -> int:
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
        if merge(a, n, time, old, spare, rest) == BROKEN:
            return BROKEN
    return FINE


@kernel
def merge(a: Ints, i: int, time: Floats, old: Floats, spare: Ints, rest: Ints) -> int:
    """Merge the i-th run with the next."""
    size = rest[MOST_RUNS : 2 * MOST_RUNS]
    lo, n, mid, m = rest[i], size[i], rest[i + 1], size[i + 1]
    size[i] = n + m
    for k in range(i + 1, rest[_RUNS] - 1):
        rest[k], size[k] = rest[k + 1], size[k + 1]
    rest[_RUNS] -= 1
    skip = gallop(a[mid], a[lo:mid], 0, True, time, old)
    lo, n = lo + skip, n - skip
    if n == 0:
        return FINE
    m = gallop(a[mid - 1], a[mid : mid + m], m - 1, False, time, old)
    if m == 0:
        return FINE
    for k in range(n + m):
        spare[k] = a[lo + k]
    if n <= m:
        return merge_forwards(a[lo : lo + n + m], spare[:n], spare[n : n + m], time, old, rest)
    return merge_backwards(a[lo : lo + n + m], spare[:n], spare[n : n + m], time, old, rest)


@kernel
def merge_forwards(out: Ints, first: Ints, second: Ints, time: Floats, old: Floats, rest: Ints) -> int:
    """Merge from the left; the second run is known to begin first and the first run to end last."""
    n, m = first.size, second.size
    out[0] = second[0]
    i, j = 0, 1
    gallop_at = rest[_GALLOP]
    done = j == m or n == 1
    while not done:
        wins = losses = 0
        while True:
            if before(time, old, second[j], first[i]) < 0:
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
            count1 = gallop(second[j], first[i:], 0, True, time, old)
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
            count2 = gallop(first[i], second[j:], 0, False, time, old)
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
def merge_backwards(out: Ints, first: Ints, second: Ints, time: Floats, old: Floats, rest: Ints) -> int:
    """Merge from the right, the mirror image."""
    i, j = first.size - 1, second.size - 1
    out[i + j + 1] = first[i]
    i -= 1
    gallop_at = rest[_GALLOP]
    done = i < 0 or j == 0
    while not done:
        wins = losses = 0
        while True:
            if before(time, old, second[j], first[i]) < 0:
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
            count1 = i + 1 - gallop(second[j], first[: i + 1], i, True, time, old)
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
            count2 = j + 1 - gallop(first[i], second[: j + 1], j, False, time, old)
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
def gallop(key: int, a: Ints, hint: int, right: bool, time: Floats, old: Floats) -> int:
    """Where ``key`` belongs in ``a`` (after equals if ``right``), by doubling steps from ``hint``, then bisection."""
    last, step = 0, 1
    if goes_before(key, a[hint], right, time, old):
        while step < hint + 1 and goes_before(key, a[hint - step], right, time, old):
            last, step = step, 2 * step + 1
        lo, hi = hint - min(step, hint + 1), hint - last
    else:
        while step < a.size - hint and not goes_before(key, a[hint + step], right, time, old):
            last, step = step, 2 * step + 1
        lo, hi = hint + last, hint + min(step, a.size - hint)
    lo += 1
    while lo < hi:
        middle = lo + ((hi - lo) >> 1)
        if goes_before(key, a[middle], right, time, old):
            hi = middle
        else:
            lo = middle + 1
    return hi


@kernel
def goes_before(key: int, item: int, right: bool, time: Floats, old: Floats) -> bool:
    """Whether the key belongs somewhere before this item."""
    return before(time, old, key, item) < 0 if right else before(time, old, item, key) >= 0


def scratch() -> Ints:
    """Room for what a sort keeps beside the list."""
    return np.zeros(REST, dtype=np.int64)
