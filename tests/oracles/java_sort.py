"""The comparisons of Java's list sort, in order, for comparators that are not transitive.

With a consistent comparator every stable sort gives the same list. AlloXPlus compares differences cut to whole
seconds, which is not transitive, so its order depends on which pairs the sort happens to compare: natural runs,
extended to a minimum length by binary insertion, merged pairwise with galloping (T. Peters' list sort, 2002, as Java 7
and later use it for lists).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
Compare = Callable[[T, T], int]

SHORT = 32
GALLOP = 7


def java_sorted(items: list[T], compare: Compare[T]) -> list[T]:
    """Return the items in the order in which Java's ``Collections.sort`` would leave them."""
    a = list(items)
    n = len(a)
    if n < 2:
        return a
    if n < SHORT:
        insert_from(a, 0, n, natural_run(a, 0, n, compare), compare)
        return a
    least, odd = n, 0
    while least >= SHORT:
        odd |= least & 1
        least >>= 1
    least += odd
    merger = Merger(a, compare)
    lo = 0
    while lo < n:
        length = natural_run(a, lo, n, compare)
        if length < least:
            wanted = min(least, n - lo)
            insert_from(a, lo, lo + wanted, lo + length, compare)
            length = wanted
        merger.push(lo, length)
        lo += length
    merger.finish()
    return a


def natural_run(a: list[T], lo: int, hi: int, compare: Compare[T]) -> int:
    """Length of the run that starts at ``lo``; a strictly falling one is turned round."""
    end = lo + 1
    if end == hi:
        return 1
    falling = compare(a[end], a[lo]) < 0
    end += 1
    while end < hi and (compare(a[end], a[end - 1]) < 0) == falling:
        end += 1
    if falling:
        a[lo:end] = a[lo:end][::-1]
    return end - lo


def insert_from(a: list[T], lo: int, hi: int, start: int, compare: Compare[T]) -> None:
    """Binary insertion of ``a[start:hi]`` into the sorted ``a[lo:start]``."""
    for i in range(start, hi):
        pivot = a[i]
        left, right = lo, i
        while left < right:
            middle = (left + right) >> 1
            if compare(pivot, a[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        a[left : i + 1] = [pivot, *a[left:i]]


class Merger(Generic[T]):
    """A stack of neighbouring runs, merged so that their lengths stay balanced."""

    def __init__(self, a: list[T], compare: Compare[T]) -> None:
        self.a = a
        self.compare = compare
        self.runs: list[tuple[int, int]] = []
        self.min_gallop = GALLOP

    def push(self, lo: int, length: int) -> None:
        self.runs.append((lo, length))
        while len(self.runs) > 1:
            n = len(self.runs) - 2
            size = [length for _, length in self.runs]
            if (n > 0 and size[n - 1] <= size[n] + size[n + 1]) or (n > 1 and size[n - 2] <= size[n] + size[n - 1]):
                self.merge(n - 1 if size[n - 1] < size[n + 1] else n)
            elif size[n] <= size[n + 1]:
                self.merge(n)
            else:
                return

    def finish(self) -> None:
        while len(self.runs) > 1:
            n = len(self.runs) - 2
            self.merge(n - 1 if n > 0 and self.runs[n - 1][1] < self.runs[n + 1][1] else n)

    def merge(self, i: int) -> None:
        (lo, n), (mid, m) = self.runs[i], self.runs[i + 1]
        self.runs[i : i + 2] = [(lo, n + m)]
        a, compare = self.a, self.compare
        skip = gallop(a[mid], a[lo:mid], 0, compare, right=True)
        lo, n = lo + skip, n - skip
        if n == 0:
            return
        m = gallop(a[mid - 1], a[mid : mid + m], m - 1, compare, right=False)
        if m == 0:
            return
        first, second = a[lo : lo + n], a[mid : mid + m]
        merged = self.forwards(first, second) if n <= m else self.backwards(first, second)
        a[lo : lo + n + m] = merged

    def forwards(self, first: list[T], second: list[T]) -> list[T]:
        """Merge from the left; the second run is known to begin first and the first run to end last."""
        compare = self.compare
        out = [second[0]]
        i, j = 0, 1
        n, m = len(first), len(second)
        gallop_at = self.min_gallop
        done = j == m or n == 1
        while not done:
            wins = losses = 0
            while True:
                if compare(second[j], first[i]) < 0:
                    out.append(second[j])
                    j, losses, wins = j + 1, losses + 1, 0
                    done = j == m
                else:
                    out.append(first[i])
                    i, wins, losses = i + 1, wins + 1, 0
                    done = i == n - 1
                if done or max(wins, losses) >= gallop_at:
                    break
            if done:
                break
            while True:
                count1 = gallop(second[j], first[i:], 0, compare, right=True)
                out += first[i : i + count1]
                i += count1
                if count1 and i >= n - 1:
                    done = True
                    break
                out.append(second[j])
                j += 1
                if j == m:
                    done = True
                    break
                count2 = gallop(first[i], second[j:], 0, compare, right=False)
                out += second[j : j + count2]
                j += count2
                if count2 and j == m:
                    done = True
                    break
                out.append(first[i])
                i += 1
                if i == n - 1:
                    done = True
                    break
                gallop_at -= 1
                if count1 < GALLOP and count2 < GALLOP:
                    break
            if not done:
                gallop_at = max(gallop_at, 0) + 2
        self.min_gallop = max(gallop_at, 1)
        if i == n:
            raise ValueError("the comparison contradicts itself")
        return out + second[j:] + first[i:]

    def backwards(self, first: list[T], second: list[T]) -> list[T]:
        """Merge from the right, the mirror image; ``out`` is built backwards."""
        compare = self.compare
        out = [first[-1]]
        i, j = len(first) - 2, len(second) - 1
        gallop_at = self.min_gallop
        done = i < 0 or j == 0
        while not done:
            wins = losses = 0
            while True:
                if compare(second[j], first[i]) < 0:
                    out.append(first[i])
                    i, wins, losses = i - 1, wins + 1, 0
                    done = i < 0
                else:
                    out.append(second[j])
                    j, losses, wins = j - 1, losses + 1, 0
                    done = j == 0
                if done or max(wins, losses) >= gallop_at:
                    break
            if done:
                break
            while True:
                count1 = i + 1 - gallop(second[j], first[: i + 1], i, compare, right=True)
                out += first[i + 1 - count1 : i + 1][::-1]
                i -= count1
                if count1 and i < 0:
                    done = True
                    break
                out.append(second[j])
                j -= 1
                if j == 0:
                    done = True
                    break
                count2 = j + 1 - gallop(first[i], second[: j + 1], j, compare, right=False)
                out += second[j + 1 - count2 : j + 1][::-1]
                j -= count2
                if count2 and j <= 0:
                    done = True
                    break
                out.append(first[i])
                i -= 1
                if i < 0:
                    done = True
                    break
                gallop_at -= 1
                if count1 < GALLOP and count2 < GALLOP:
                    break
            if not done:
                gallop_at = max(gallop_at, 0) + 2
        self.min_gallop = max(gallop_at, 1)
        if j < 0:
            raise ValueError("the comparison contradicts itself")
        return second[: j + 1] + first[: i + 1] + out[::-1]


def gallop(key: T, a: list[T], hint: int, compare: Compare[T], *, right: bool) -> int:
    """Where ``key`` belongs in ``a`` (after equals if ``right``), by doubling steps from ``hint``, then bisection."""

    def goes_before(i: int) -> bool:
        return compare(key, a[i]) < 0 if right else compare(a[i], key) >= 0

    last, step = 0, 1
    if goes_before(hint):
        while step < hint + 1 and goes_before(hint - step):
            last, step = step, 2 * step + 1
        lo, hi = hint - min(step, hint + 1), hint - last
    else:
        while step < len(a) - hint and not goes_before(hint + step):
            last, step = step, 2 * step + 1
        lo, hi = hint + last, hint + min(step, len(a) - hint)
    lo += 1
    while lo < hi:
        middle = lo + ((hi - lo) >> 1)
        if goes_before(middle):
            hi = middle
        else:
            lo = middle + 1
    return hi
