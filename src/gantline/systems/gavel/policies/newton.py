"""Newton's step of the interior-point method, and the small loops around it (see :mod:`.interior` for the names)."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import compiled_numpy
from gantline.systems.gavel.policies.elimination import substitute
from gantline.systems.gavel.policies.interior_bundles import Factors, InteriorProgram, Iterate, Residuals, Step


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
