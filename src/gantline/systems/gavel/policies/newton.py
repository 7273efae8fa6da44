"""Solve the normal equations of the interior-point method: kind by kind, or densely where pairs tie kinds together.

The matrix is ``A diag(inverse) A' + diag(s / y)``. Without pairs a column touches the two rows of one kind and one device
row: 2 x 2 blocks with a border as wide as there are device types, so a step costs a number of operations proportional to
jobs times types. Pivots, and what is left of the border after elimination, are summed from terms of one sign: near an
optimum the textbook differences cancel to nothing, and with them the last digits of the answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled_numpy

# What the interior-point method works on, as bundles that compiled functions take (see :mod:`.interior` for the names).

Matrix = tuple[Ints, Ints, Floats]
"""By columns: where each begins, and the row and the value of every entry."""
Factors = tuple[Floats, Floats, Floats, Floats]
"""What elimination leaves: pivots, lowers, border, core."""


class InteriorProgram(NamedTuple):
    """The problem, with everything filled in that was not given."""

    matrix: Matrix
    bound: Floats
    column_weight: Floats
    row_weight: Floats
    gain: Floats
    bend: Floats
    kinds: int
    arrow: bool
    levelled: bool
    num: Floats
    den: Floats
    off: Floats


class Iterate(NamedTuple):
    """Columns, then the slack of every row (``p``), their prices (``q``) and the weights of their barrier terms."""

    p: Floats
    q: Floats
    weight: Floats


class Residuals(NamedTuple):
    """By how much the equations are missed, and the slopes of what the level demands of the rows."""

    dual: Floats
    inverse: Floats
    lack: Floats
    slope: Floats
    pull: float  # of the level
    bow: float


class Step(NamedTuple):
    """Where a step is written: of columns and slacks, and of their prices."""

    dp: Floats
    dq: Floats


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


# Newton's step of the interior-point method, and the small loops around it (see :mod:`.interior` for the names).


@compiled_numpy
def newton_step(program: InteriorProgram, at: Iterate, aim: Floats, missed: Residuals, factors: Factors, step: Step) -> float:
    """Newton's step for the products ``p q = aim``: writes ``dp`` and ``dq``, returns the step of the level.

    Near the optimum the elimination loses digits, so what is left of the row equations is solved for once more.
    """
    matrix, w, kinds, arrow, levelled = program.matrix, program.row_weight, program.kinds, program.arrow, program.levelled
    dual, inverse, lack, slope, pull, bow = missed
    p, q, dp, dq = at.p, at.q, step.dp, step.dq
    columns, rows = len(inverse), len(w)
    right, follow, used = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for r in range(rows):
        follow[r] = slope[r] if w[r] > 0.0 else 0.0
        dq[columns + r] = 0.0
    yielding = bow
    if levelled:
        substitute(factors, follow, kinds, arrow, w)
        for r in range(rows):
            yielding += slope[r] * follow[r]
    shift = 0.0
    for attempt in range(3):
        rest = -pull - bow * shift
        for c in range(columns):
            dp[c] = inverse[c] * (aim[c] / p[c] - q[c] - dual[c] - push(matrix, dq, columns, c))
        apply(matrix, dp, used)
        for r in range(rows):
            i = columns + r
            if w[r] > 0.0:
                right[r] = lack[r] + used[r] + slope[r] * shift + (aim[i] - p[i] * dq[i]) / q[i] - p[i]
                rest -= slope[r] * dq[i]
                if p[i] > q[i]:  # a loose row: its slack follows from the columns; a tight one's from its price
                    dp[i] = -lack[r] - used[r] - slope[r] * shift
                else:
                    dp[i] = (aim[i] - p[i] * dq[i]) / q[i] - p[i]
            else:
                right[r] = 0.0
        if attempt == 2:
            break
        substitute(factors, right, kinds, arrow, w)
        more = 0.0
        if levelled:
            for r in range(rows):
                rest -= slope[r] * right[r]
            more = rest / yielding
            shift += more
        for r in range(rows):
            if w[r] > 0.0:
                dq[columns + r] += right[r] + more * follow[r]
    for c in range(columns):
        dq[c] = (aim[c] - q[c] * dp[c]) / p[c] - q[c]
    return shift


@compiled_numpy
def demand(num, den, off, level, need, slope, curve):  # type: ignore[no-untyped-def]
    """What the level demands of each row, with first and second derivative."""
    for r in range(len(num)):
        left = den[r] - off[r] * level
        need[r] = num[r] * level / left
        slope[r] = num[r] * den[r] / (left * left)
        curve[r] = 2.0 * slope[r] * off[r] / left


@compiled_numpy
def pole(level, shift, num, den, off):  # type: ignore[no-untyped-def]
    """How far the level may move before a row's demand grows beyond all bounds."""
    far = 1.0
    for r in range(len(num)):
        if num[r] > 0.0 and off[r] * shift > 0.0:
            far = min(far, 0.9 * (den[r] / off[r] - level) / shift)
    return far


@compiled_numpy
def uneven(p, q, weight, middle):  # type: ignore[no-untyped-def]
    """How far the products ``p q`` are from those of the central path, relatively."""
    worst = 0.0
    for i in range(len(p)):
        if weight[i] > 0.0:
            worst = max(worst, abs(p[i] * q[i] / (middle * weight[i]) - 1.0))
    return worst


@compiled_numpy
def reach(values, steps):  # type: ignore[no-untyped-def]
    """How far one may step before a value turns negative; a whole step at most."""
    far = 1.0
    for i in range(len(values)):
        if steps[i] < 0.0:
            far = min(far, -values[i] / steps[i])
    return far


@compiled_numpy
def shorten(p, q, dp, dq, weight, bend, mass, far):  # type: ignore[no-untyped-def]
    """The longest of a few steps after which no product ``p q`` is far below the others: from there a curve leads nowhere."""
    for _ in range(12):
        gap = 0.0
        for i in range(len(p)):
            gap += (p[i] + far * dp[i]) * (q[i] + far * dq[i]) if weight[i] > 0.0 else 0.0
        inside = True
        for i in range(len(p)):
            wanted = bend[i] if i < len(bend) and bend[i] > 0.0 else gap / mass * weight[i]
            inside = inside and (p[i] + far * dp[i]) * (q[i] + far * dq[i]) >= min(0.02 * wanted, 0.9 * p[i] * q[i])
        if inside:
            break
        far *= 0.7
    return far


@compiled_numpy
def apply(matrix, x, out):  # type: ignore[no-untyped-def]
    """out = A x."""
    start, index, value = matrix
    for r in range(len(out)):
        out[r] = 0.0
    for c in range(len(start) - 1):
        for e in range(start[c], start[c + 1]):
            out[index[e]] += value[e] * x[c]


@compiled_numpy
def push(matrix, q, columns, c):  # type: ignore[no-untyped-def]
    """Column c of A, weighed with the prices of its rows."""
    start, index, value = matrix
    total = 0.0
    for e in range(start[c], start[c + 1]):
        total += value[e] * q[columns + index[e]]
    return total
