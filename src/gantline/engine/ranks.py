"""Rows in rank order: those that run and those that wait, two lists that are each kept sorted by (key, row).

Keys of waiting rows do not move between decisions, so their list stays sorted by itself; those that run are few. A histogram of
the smallest demand of each waiting row shows the walk when no row behind can fit.
"""

from __future__ import annotations

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.engine.lists import Lists, RowCount


@kernel
def before(F: Floats, a: int, b: int) -> bool:
    """Whether row a ranks before row b."""
    return F[Job.KEY, a] < F[Job.KEY, b] or (F[Job.KEY, a] == F[Job.KEY, b] and a < b)


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
def rebuild(I: Ints, lists: Lists) -> None:
    """Both lists anew from the active rows, after changes that did not come from a walk."""
    n_run, n_wait = 0, 0
    lists.demand[:] = 0
    for k in range(lists.number[RowCount.ACTIVE]):
        row = lists.active[k]
        if I[Job.PHASE, row] == PENDING:
            lists.waiting[n_wait] = row
            n_wait += 1
            lists.demand[I[Job.SMALLEST, row]] += 1
        else:
            lists.running[n_run] = row
            n_run += 1
    lists.number[RowCount.RUNNING], lists.number[RowCount.WAITING] = n_run, n_wait


@kernel
def leave(lists: Lists, row: int) -> None:
    """A row is not active any more."""
    lists.number[RowCount.ACTIVE] = drop_sorted(lists.active, lists.number[RowCount.ACTIVE], row)


@kernel
def drop_sorted(rows: Ints, n: int, row: int) -> int:
    """Take one row out of a list that is sorted by row."""
    at = 0
    while at < n and rows[at] < row:
        at += 1
    if at == n or rows[at] != row:
        return n
    for k in range(at, n - 1):
        rows[k] = rows[k + 1]
    return n - 1
