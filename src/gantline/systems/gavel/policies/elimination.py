"""Solve the normal equations of the interior-point method: kind by kind, or densely where pairs tie kinds together.

The matrix is ``A diag(inverse) A' + diag(s / y)``. Without pairs a column touches the two rows of one kind and one device
row: 2 x 2 blocks with a border as wide as there are device types, so a step costs a number of operations proportional to
jobs times types. Pivots, and what is left of the border after elimination, are summed from terms of one sign: near an
optimum the textbook differences cancel to nothing, and with them the last digits of the answer.
"""

from __future__ import annotations

import numpy as np

from gantline.core.jit import compiled_numpy


@compiled_numpy
def eliminate(matrix, inverse, s, y, w, kinds, arrow):  # type: ignore[no-untyped-def]
    """Factor the matrix; returns (pivots, lowers, border, core)."""
    start, index, value = matrix
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
    weight, entry, devices = np.zeros((kinds, types)), np.zeros((kinds, types)), np.zeros(kinds)
    extra = np.zeros(kinds)
    for c in range(len(inverse)):
        a, f, j, d = _entries(matrix, c, kinds)
        if j < 0:
            extra[a] += f * f * inverse[c]  # a column that stands for the throughput itself
        else:
            weight[a, j], entry[a, j], devices[a] = inverse[c], f, d
    for a in range(kinds):
        loose = s[2 * a] / y[2 * a]
        floored = w[2 * a + 1] > 0.0
        slack = s[2 * a + 1] / y[2 * a + 1] + extra[a] if floored else 1.0
        time = mean = spread = 0.0
        for j in range(types):
            entry[a, j] = entry[a, j] if floored else 0.0
            time += weight[a, j]
            mean += entry[a, j] * weight[a, j]
            border[2 * a, j] = devices[a] * weight[a, j]
            border[2 * a + 1, j] = devices[a] * entry[a, j] * weight[a, j]
        mean = mean / time if time > 0.0 else 0.0
        for j in range(types):
            spread += (entry[a, j] - mean) ** 2 * weight[a, j]
        pivots[2 * a] = loose + time
        pivots[2 * a + 1] = slack + spread + mean * mean * time * (loose / pivots[2 * a])
        lowers[a] = mean * time / pivots[2 * a]
        _add_rest(core, weight[a], entry[a], devices[a], loose, slack, pivots[2 * a] * pivots[2 * a + 1])
    for j in range(types):
        r = 2 * kinds + j
        core[j, j] += s[r] / y[r] if w[r] > 0.0 else 1.0
    _cholesky(core)
    return pivots, lowers, border, core


@compiled_numpy
def _add_rest(core, weight, entry, devices, loose, slack, determinant):  # type: ignore[no-untyped-def]
    """Add what the elimination of one kind leaves of the border: minors of diagonal + two rank-one terms, by Cauchy-Binet."""
    types = len(weight)
    for j in range(types):
        if weight[j] == 0.0:
            continue
        minor = loose * slack
        for h in range(types):
            if h != j:
                minor += weight[h] * (slack + loose * entry[h] * entry[h])
                for i in range(h):
                    if i != j:
                        minor += weight[h] * weight[i] * (entry[h] - entry[i]) ** 2
        core[j, j] += devices * devices * weight[j] * (minor / determinant)
        for h in range(j):
            minor = slack + loose * entry[j] * entry[h]
            for i in range(types):
                if i != j and i != h:
                    minor += weight[i] * (entry[i] - entry[j]) * (entry[i] - entry[h])
            change = devices * devices * weight[j] * (weight[h] * minor / determinant)
            core[j, h] -= change
            core[h, j] -= change


@compiled_numpy
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


@compiled_numpy
def _cholesky(core):  # type: ignore[no-untyped-def]
    """Factor in place, lower triangle; a pivot lost to rounding is replaced by what rounding leaves of it."""
    size = len(core)
    for i in range(size):
        for j in range(i + 1):
            total = core[i, j]
            for h in range(j):
                total -= core[i, h] * core[j, h]
            if j < i:
                core[i, j] = total / core[j, j]
            else:
                core[i, i] = np.sqrt(max(total, 1e-16 * core[i, i]))


@compiled_numpy
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


@compiled_numpy
def _entries(matrix, c, kinds):  # type: ignore[no-untyped-def]
    """A column without pairs: its kind, its floor entry, its device row (-1: none) and the entry there."""
    start, index, value = matrix
    a, f, j, d = 0, 0.0, -1, 0.0
    for e in range(start[c], start[c + 1]):
        r = index[e]
        if r >= 2 * kinds:
            j, d = r - 2 * kinds, value[e]
        else:
            a = r // 2
            f = value[e] if r % 2 == 1 else f
    return a, f, j, d
