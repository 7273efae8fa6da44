"""The assignment solver of IRFsim, whose choice among equally good matchings moves AlloX' mean by several per cent.

Rows are slots (position 1 of every machine, then position 2, ...), columns jobs and, to make a square, zero columns. Column
minima are subtracted; each row in turn takes its first free zero; then every row left over, in order, grows an alternating
tree that always takes the column of least slack (lowest number if equal, parents changed only for a strictly smaller
slack). Plain double arithmetic in the same order, because smaller differences than one could round away flip ties.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from gantline.policies.allox.ways import Floats, Ints


@njit(cache=True)
def match_slots(slots: Floats) -> Ints:
    """The column of every row: a job, or a number beyond the last job for a slot left empty."""
    size, jobs = slots.shape
    cost = np.zeros((size, size))
    for c in range(jobs):
        cost[:, c] = slots[:, c] - slots[:, c].min()
    row_label, column_label = np.zeros(size), np.zeros(size)
    column_of, row_of = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    for row in range(size):
        for c in range(size):
            if row_of[c] < 0 and cost[row, c] == 0.0:
                column_of[row], row_of[c] = c, row
                break
    for root in range(size):
        if column_of[root] < 0:
            grow_tree(root, cost, row_label, column_label, column_of, row_of)
    return column_of


@njit(cache=True)
def grow_tree(root: int, cost: Floats, row_label: Floats, column_label: Floats, column_of: Ints, row_of: Ints) -> None:
    """One phase: from an unmatched row to a free column, then the matching along the path turned over."""
    size = cost.shape[0]
    in_tree: npt.NDArray[np.bool_] = np.zeros(size, np.bool_)
    in_tree[root] = True
    parent, nearest = np.full(size, -1, np.int64), np.full(size, root, np.int64)
    slack = cost[root] - row_label[root] - column_label
    while True:
        column = -1
        for c in range(size):
            if parent[c] < 0 and (column < 0 or slack[c] < slack[column]):
                column = c
        step = slack[column]
        if step > 0:
            for i in range(size):
                if in_tree[i]:
                    row_label[i] += step
                if parent[i] >= 0:
                    column_label[i] -= step
                else:
                    slack[i] -= step
        parent[column] = nearest[column]
        row = row_of[column]
        if row < 0:
            break
        in_tree[row] = True
        for c in range(size):
            if parent[c] < 0:
                reach = cost[row, c] - row_label[row] - column_label[c]
                if reach < slack[c]:
                    slack[c], nearest[c] = reach, row
    while column >= 0:
        row = parent[column]
        following = column_of[row]
        column_of[row], row_of[column] = column, row
        column = following
