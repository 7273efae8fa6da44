"""Solve the normal equations of the interior-point method: kind by kind, or densely where pairs tie kinds together.

The matrix is ``A diag(inverse) A' + diag(s / y)``. Without pairs a column touches the two rows of one kind and one device
row: 2 x 2 blocks with a border as wide as there are device types, so a step costs a number of operations proportional to
jobs times types. The second pivot of a block is summed from positive terms only; the textbook difference would cancel.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def eliminate(start, index, value, inverse, s, y, w, kinds, arrow):  # type: ignore[no-untyped-def]
    """Factor the matrix; returns (pivots, lowers, border, core)."""
    rows = len(s)
    types = rows - 2 * kinds
    if not arrow:
        core = np.zeros((rows, rows))
        for c in range(len(inverse)):
            for e in range(start[c], start[c + 1]):
                for f in range(start[c], start[c + 1]):
                    core[index[e], index[f]] += value[e] * value[f] * inverse[c]
        for r in range(rows):
            if w[r] > 0.0:
                core[r, r] += s[r] / y[r]
            else:
                for h in range(rows):
                    core[r, h] = core[h, r] = 0.0
                core[r, r] = 1.0
        _cholesky(core)
        return np.zeros(1), np.zeros(1), np.zeros((1, 1)), core
    pivots, lowers = np.ones(2 * kinds), np.zeros(kinds)
    border, core = np.zeros((2 * kinds, types)), np.zeros((types, types))
    time, mean, spread = np.zeros(kinds), np.zeros(kinds), np.zeros(kinds)
    for c in range(len(inverse)):  # sums for the weighted mean of the floor entries among columns that use time
        a, t, f, j, d = _entries(start, index, value, c, kinds)
        time[a] += t * t * inverse[c]
        mean[a] += t * f * inverse[c]
        if j >= 0:
            border[2 * a, j] += t * d * inverse[c]
            border[2 * a + 1, j] += f * d * inverse[c] if w[2 * a + 1] > 0.0 else 0.0
            core[j, j] += d * d * inverse[c]
    for a in range(kinds):
        mean[a] = mean[a] / time[a] if time[a] > 0.0 else 0.0
    for c in range(len(inverse)):
        a, t, f, _j, _d = _entries(start, index, value, c, kinds)
        spread[a] += (f - mean[a] * t) ** 2 * inverse[c]
    for a in range(kinds):
        loose = s[2 * a] / y[2 * a] if w[2 * a] > 0.0 else 1.0
        pivots[2 * a] = loose + time[a]
        if w[2 * a + 1] > 0.0:
            lowers[a] = mean[a] * time[a] / pivots[2 * a]
            slack = s[2 * a + 1] / y[2 * a + 1]
            pivots[2 * a + 1] = slack + spread[a] + mean[a] ** 2 * time[a] * (loose / pivots[2 * a])
    for a in range(kinds):
        for j in range(types):
            first = border[2 * a, j]
            second = border[2 * a + 1, j] - lowers[a] * first
            for h in range(types):
                other = border[2 * a + 1, h] - lowers[a] * border[2 * a, h]
                core[j, h] -= first * border[2 * a, h] / pivots[2 * a] + second * other / pivots[2 * a + 1]
    for j in range(types):
        r = 2 * kinds + j
        core[j, j] += s[r] / y[r] if w[r] > 0.0 else 1.0
    _cholesky(core)
    return pivots, lowers, border, core


@njit(cache=True)
def substitute(factors, right, kinds, arrow, w):  # type: ignore[no-untyped-def]
    """Solve in place."""
    pivots, lowers, border, core = factors
    if not arrow:
        _solve_triangular(core, right)
        return
    types = len(core)
    tail = np.empty(types)
    for j in range(types):
        tail[j] = right[2 * kinds + j]
    for a in range(kinds):
        low = right[2 * a + 1] - lowers[a] * right[2 * a]
        for j in range(types):
            first = border[2 * a, j]
            second = border[2 * a + 1, j] - lowers[a] * first
            tail[j] -= first * right[2 * a] / pivots[2 * a] + second * low / pivots[2 * a + 1]
    _solve_triangular(core, tail)
    for a in range(kinds):
        top, low = right[2 * a], right[2 * a + 1]
        for j in range(types):
            top -= border[2 * a, j] * tail[j]
            low -= border[2 * a + 1, j] * tail[j]
        low = (low - lowers[a] * top) / pivots[2 * a + 1] if w[2 * a + 1] > 0.0 else 0.0
        right[2 * a + 1] = low
        right[2 * a] = top / pivots[2 * a] - lowers[a] * low
    for j in range(types):
        right[2 * kinds + j] = tail[j]


@njit(cache=True)
def _cholesky(matrix):  # type: ignore[no-untyped-def]
    """Factor in place, lower triangle; a pivot lost to rounding is replaced by what rounding leaves of it."""
    size = len(matrix)
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for h in range(j):
                total -= matrix[i, h] * matrix[j, h]
            if j < i:
                matrix[i, j] = total / matrix[j, j]
            else:
                matrix[i, i] = np.sqrt(max(total, 1e-16 * matrix[i, i]))


@njit(cache=True)
def _solve_triangular(lower, right):  # type: ignore[no-untyped-def]
    """Solve L L' x = right in place."""
    size = len(lower)
    for i in range(size):
        for j in range(i):
            right[i] -= lower[i, j] * right[j]
        right[i] /= lower[i, i]
    for i in range(size - 1, -1, -1):
        right[i] /= lower[i, i]
        for j in range(i):
            right[j] -= lower[i, j] * right[i]


@njit(cache=True)
def _entries(start, index, value, c, kinds):  # type: ignore[no-untyped-def]
    """A column without pairs: its kind, its time and floor entries, its device row and the entry there."""
    a, t, f, j, d = 0, 0.0, 0.0, -1, 0.0
    for e in range(start[c], start[c + 1]):
        r = index[e]
        if r >= 2 * kinds:
            j, d = r - 2 * kinds, value[e]
        elif r % 2 == 0:
            a, t = r // 2, value[e]
        else:
            a, f = r // 2, value[e]
    return a, t, f, j, d
