"""Rows in rank order: those that run and those that wait, two lists that are each kept sorted by (key, row).

Keys of waiting rows do not move between decisions, so their list stays sorted by itself; those that run are few. A histogram of the smallest
demand of each waiting row tells the walk when nobody behind can fit.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.phases import PENDING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# B: the counters of the loop
B_ACTIVE = 0  # rows in `active`
B_RUNNING = 1  # rows in `running`
B_WAITING = 2  # rows in `waiting`
B_NEXT = 3  # next row to arrive
B_HELD = 4  # next row that admission has not let in
B_FINISHED = 5  # finished by the last advance
B_ADMITTED = 6  # let in by the last arrive
B_COUNT = 7


@njit(cache=True)
def sort_rows(F: Floats, rows: Ints, n: int) -> None:
    """Sort rows by (key, row). They are nearly sorted from last time: insertion, and a full sort if that proves slow."""
    budget = 6 * n + 64
    for i in range(1, n):
        row = rows[i]
        key = F[c.KEY, row]
        j = i - 1
        while j >= 0:
            other = rows[j]
            other_key = F[c.KEY, other]
            if other_key < key or (other_key == key and other < row):
                break
            rows[j + 1] = other
            j -= 1
            budget -= 1
        rows[j + 1] = row
        if budget < 0:
            by_row = np.sort(rows[:n])
            keys = np.empty(n)
            for k in range(n):
                keys[k] = F[c.KEY, by_row[k]]
            by_key = np.argsort(keys, kind="mergesort")
            for k in range(n):
                rows[k] = by_row[by_key[k]]
            return


@njit(cache=True)
def insert_waiting(F: Floats, I: Ints, waiting: Ints, B: Ints, hist: Ints, row: int) -> None:  # noqa: E741
    """Put a row where its key belongs among those that wait."""
    low, high = 0, B[B_WAITING]
    key = F[c.KEY, row]
    while low < high:
        middle = (low + high) // 2
        other = waiting[middle]
        if F[c.KEY, other] < key or (F[c.KEY, other] == key and other < row):
            low = middle + 1
        else:
            high = middle
    for k in range(B[B_WAITING], low, -1):
        waiting[k] = waiting[k - 1]
    waiting[low] = row
    B[B_WAITING] += 1
    hist[I[c.SMALLEST, row]] += 1


@njit(cache=True)
def rebuild(I: Ints, active: Ints, running: Ints, waiting: Ints, B: Ints, hist: Ints) -> None:  # noqa: E741
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


@njit(cache=True)
def drop_sorted(rows: Ints, n: int, row: int) -> int:
    """Take one row out of a list that is sorted by row."""
    at = np.searchsorted(rows[:n], row)
    if at < n and rows[at] == row:
        for k in range(at, n - 1):
            rows[k] = rows[k + 1]
        return n - 1
    return n
