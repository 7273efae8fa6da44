"""Rows in rank order: those that run and those that wait, two lists that are each kept sorted by (key, row).

Keys of waiting rows do not move between decisions, so their list stays sorted by itself; those that run are few. A histogram of
the smallest demand of each waiting row tells the walk when nobody behind can fit.
"""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import PENDING

# B: the counters of the loop
B_ACTIVE = 0  # rows in `active`
B_RUNNING = 1  # rows in `running`
B_WAITING = 2  # rows in `waiting`
B_NEXT = 3  # next row to arrive
B_HELD = 4  # next row that admission has not let in
B_FINISHED = 5  # finished by the last advance
B_ADMITTED = 6  # let in by the last arrive
B_COUNT = 7


@kernel
def before(F: Floats, a: int, b: int) -> bool:
    """Whether row a ranks before row b."""
    return F[c.KEY, a] < F[c.KEY, b] or (F[c.KEY, a] == F[c.KEY, b] and a < b)


@kernel
def _sort_fully(F: Floats, rows: Ints, n: int) -> None:
    """Heapsort in place; ranks are unique, so it need not be stable."""
    for root in range(n // 2 - 1, -1, -1):
        _sift(F, rows, root, n)
    for end in range(n - 1, 0, -1):
        rows[0], rows[end] = rows[end], rows[0]
        _sift(F, rows, 0, end)


@kernel
def _sift(F: Floats, rows: Ints, root: int, size: int) -> None:
    row = rows[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and before(F, rows[child], rows[child + 1]):
            child += 1
        if not before(F, row, rows[child]):
            break
        rows[root] = rows[child]
        root = child
    rows[root] = row


@kernel
def sort_rows(F: Floats, rows: Ints, n: int) -> None:
    """Sort rows by (key, row). They are nearly sorted from last time: insertion, and a full sort if that proves slow."""
    budget = 16 * n + 64
    for i in range(1, n):
        row = rows[i]
        j = i - 1
        while j >= 0 and before(F, row, rows[j]):
            rows[j + 1] = rows[j]
            j -= 1
            budget -= 1
        rows[j + 1] = row
        if budget < 0:
            _sort_fully(F, rows, n)
            return


@kernel
def insert_waiting(F: Floats, I: Ints, waiting: Ints, B: Ints, hist: Ints, row: int) -> None:
    """Put a row where its key belongs among those that wait."""
    low, high = 0, B[B_WAITING]
    while low < high:
        middle = (low + high) // 2
        if before(F, waiting[middle], row):
            low = middle + 1
        else:
            high = middle
    for k in range(B[B_WAITING], low, -1):
        waiting[k] = waiting[k - 1]
    waiting[low] = row
    B[B_WAITING] += 1
    hist[I[c.SMALLEST, row]] += 1


@kernel
def rebuild(I: Ints, active: Ints, running: Ints, waiting: Ints, B: Ints, hist: Ints) -> None:
    """Both lists anew from the active rows, after changes that did not come from a walk."""
    n_run, n_wait = 0, 0
    hist[:] = 0
    for k in range(B[B_ACTIVE]):
        row = active[k]
        if I[c.PHASE, row] == PENDING:
            waiting[n_wait] = row
            n_wait += 1
            hist[I[c.SMALLEST, row]] += 1
        else:
            running[n_run] = row
            n_run += 1
    B[B_RUNNING], B[B_WAITING] = n_run, n_wait


@kernel
def drop_sorted(rows: Ints, n: int, row: int) -> int:
    """Take one row out of a list that is sorted by row."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    if low == n or rows[low] != row:
        return n
    for k in range(low, n - 1):
        rows[k] = rows[k + 1]
    return n - 1
