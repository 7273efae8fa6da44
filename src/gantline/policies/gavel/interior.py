"""The central answer: a primal-dual interior-point method with one barrier term per job, however many share a column.

The artifact's solver stops inside the optimal face, near its analytic centre, and that is part of Gavel's behaviour: nearly
every solve has more than one optimum. The centre is unique and symmetric, so it depends on nothing but the instance:
not on the history of a solver, not on the order of jobs. Weighting each barrier term by the number of jobs it stands for
makes the answer over kinds equal to the answer over jobs, iterate by iterate.

The problem is ``maximise gain . x + sum(bend * log x) + level`` subject to ``A x + demand(level) <= bound`` and
``x >= 0``, where the convex ``demand`` of a row is ``num * level / (den - off * level)``. A logarithm in the goal is a
barrier that is never taken down: its column and its price keep the product ``bend``. Mehrotra's predictor-corrector
steps; the normal equations are solved by :mod:`.elimination`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from gantline.policies.gavel.elimination import eliminate, substitute
from gantline.policies.gavel.instance import Floats, Ints

TOLERANCE = 1e-9
NEAR = 1e-4  # where the path is followed closely
NEARLY = 1e-5  # what is still an answer when rounding stops the progress


@dataclass(frozen=True, slots=True)
class Problem:
    """One convex problem in the form above."""

    start: Ints
    index: Ints
    value: Floats
    bound: Floats
    column_weight: Floats
    row_weight: Floats  # 0: the row does not exist
    gain: Floats
    bend: Floats
    kinds: int
    arrow: bool  # no column touches two kinds: eliminate kind by kind
    num: Floats | None = None  # None: the goal has no level
    den: Floats | None = None  # None: 1
    off: Floats | None = None  # None: 0


@dataclass(frozen=True, slots=True)
class Point:
    """Where the method stopped."""

    x: Floats
    level: float
    price: Floats  # of every row
    gap: float
    iterations: int

    @property
    def solved(self) -> bool:
        """Is this an optimum up to rounding?"""
        return self.gap <= NEARLY


def climb(problem: Problem, x: Floats, level: float = 0.0, *, budget: int = 100) -> Point:
    """Solve from the given strictly positive columns; ``budget`` counts steps."""
    rows = len(problem.bound)
    x, level, price, gap, iterations = _climb(
        problem.start,
        problem.index,
        problem.value,
        problem.bound,
        problem.column_weight,
        problem.row_weight,
        problem.gain,
        problem.bend,
        problem.kinds,
        problem.arrow,
        problem.num is not None,
        np.zeros(rows) if problem.num is None else problem.num,
        np.ones(rows) if problem.den is None else problem.den,
        np.zeros(rows) if problem.off is None else problem.off,
        np.array(x, dtype=np.float64),
        float(level),
        budget,
    )
    return Point(x, level, price, gap, iterations)


@njit(cache=True)
def _climb(start, index, value, bound, v, w, gain, bend, kinds, arrow, levelled, num, den, off, x, level, budget):  # type: ignore[no-untyped-def]
    """The method itself. ``p`` holds columns, then the slack of every row; ``q`` their prices; ``weight`` their terms."""
    columns, rows = len(x), len(bound)
    size = columns + rows
    p, q, weight = np.ones(size), np.zeros(size), np.zeros(size)
    dp, dq, aim = np.zeros(size), np.zeros(size), np.zeros(size)
    need, slope, curve = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    lack, dual, inverse = np.zeros(rows), np.zeros(columns), np.zeros(columns)
    direction = 1.0 if levelled else 0.0

    worth, mass, curved = direction * level, 0.0, off.max() > 0.0
    for c in range(columns):
        p[c], weight[c] = x[c], v[c]
        worth += gain[c] * x[c] + bend[c]
        mass += v[c]
        curved = curved or bend[c] > 0.0
    _demand(num, den, off, level, need, slope, curve)
    _apply(start, index, value, p, lack)
    for r in range(rows):
        weight[columns + r] = w[r]
        mass += w[r]
        if w[r] > 0.0:
            p[columns + r] = max(bound[r] - lack[r] - need[r], 1e-3 * max(1.0, abs(bound[r])))
    # A first barrier high enough that prices can balance what the goal asks for.
    asked, paid = direction, 0.0
    for r in range(rows):
        paid += abs(slope[r]) * w[r] / p[columns + r]
    if not levelled:
        for c in range(columns):
            asked += gain[c] * x[c] + bend[c]
            for e in range(start[c], start[c + 1]):
                paid += x[c] * max(value[e], 0.0) * w[index[e]] / p[columns + index[e]]
    mu = max(abs(worth) / mass, asked / paid, 1e-3 / mass)
    for i in range(size):
        q[i] = mu * weight[i] / p[i]
    for c in range(columns):
        if bend[c] > 0.0:
            q[c] = bend[c] / p[c]

    best, best_p, best_q, best_level = np.inf, p.copy(), q.copy(), level
    steps = stalled = 0
    centred, middle = False, 0.0
    while True:
        _demand(num, den, off, level, need, slope, curve)
        _apply(start, index, value, p, lack)
        worst, worth, pull, bow = 0.0, direction * level, -direction, 0.0
        for r in range(rows):
            if w[r] > 0.0:
                lack[r] += need[r] + p[columns + r] - bound[r]
                worst = max(worst, abs(lack[r]) / (1.0 + abs(bound[r])))
                pull += slope[r] * q[columns + r]
                bow += curve[r] * q[columns + r]
        wrong = abs(pull * level)
        for c in range(columns):
            dual[c] = _push(start, index, value, q, columns, c) - gain[c] - q[c]
            inverse[c] = p[c] / q[c]
            worth += gain[c] * p[c]
            wrong = max(wrong, abs(dual[c]) * min(p[c], 1.0))
        gap = 0.0
        for i in range(size):
            gap += p[i] * q[i] if weight[i] > 0.0 else 0.0
        for c in range(columns):
            if bend[c] > 0.0:
                wrong = max(wrong, abs(p[c] * q[c] - bend[c]))
        merit = max((max(gap, wrong)) / (1.0 + abs(worth)), worst)
        stalled = 0 if merit < 0.9 * best or not centred else stalled + 1
        if merit < best:
            best, best_level = merit, level
            for i in range(size):
                best_p[i], best_q[i] = p[i], q[i]
        if merit <= TOLERANCE or stalled > 8 or steps >= budget:
            break
        steps += 1
        if not centred and merit < NEAR:  # from here on the path is followed closely, so that it ends in the centre
            middle = gap / mass if middle == 0.0 else middle
            centred = _uneven(p, q, weight, middle) < 0.02

        factors = eliminate(start, index, value, inverse, p[columns:], q[columns:], w, kinds, arrow)
        for i in range(size):
            aim[i] = bend[i] if i < columns else 0.0
        if middle > 0.0 and not centred:
            for i in range(size):
                aim[i] += middle * weight[i]
        else:  # predictor: towards complementarity 0
            _direction(start, index, value, p, q, w, aim, dual, inverse, lack, slope, pull, bow, levelled, kinds, arrow, factors, dp, dq)
            far_p, far_q = _reach(p, dp), _reach(q, dq)
            ahead = 0.0
            for i in range(size):
                ahead += (p[i] + far_p * dp[i]) * (q[i] + far_q * dq[i]) if weight[i] > 0.0 else 0.0
            sigma = min(max((max(ahead, 0.0) / gap) ** 3, 1e-4), 0.9)
            if curved and worst > gap / (1.0 + abs(worth)):
                sigma = max(sigma, 0.5)  # complementarity must not run ahead of feasibility
            for i in range(size):  # corrector: towards the central path, less the products that the predictor neglects
                aim[i] += sigma * gap / mass * weight[i] - dp[i] * dq[i]
        shift = _direction(
            start, index, value, p, q, w, aim, dual, inverse, lack, slope, pull, bow, levelled, kinds, arrow, factors, dp, dq
        )
        far_p = 0.99 * min(_reach(p, dp), _pole(level, shift, num, den, off))
        far_q = 0.99 * _reach(q, dq)
        if curved:
            far_p = far_q = min(far_p, far_q)
        if not np.isfinite(far_p + far_q + shift):
            break
        level += far_p * shift
        for i in range(size):
            p[i] += far_p * dp[i]
            q[i] += far_q * dq[i]
    return best_p[:columns], best_level, best_q[columns:], best, steps


@njit(cache=True)
def _direction(start, index, value, p, q, w, aim, dual, inverse, lack, slope, pull, bow, levelled, kinds, arrow, factors, dp, dq):  # type: ignore[no-untyped-def]
    """Newton's step for the products ``p q = aim``: writes ``dp`` and ``dq``, returns the step of the level.

    Near the optimum the elimination loses digits, so what is left of the row equations is solved for once more.
    """
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
            push = _push(start, index, value, dq, columns, c)
            dp[c] = inverse[c] * (aim[c] / p[c] - q[c] - dual[c] - push)
        _apply(start, index, value, dp, used)
        for r in range(rows):
            i = columns + r
            if w[r] > 0.0:
                right[r] = lack[r] + used[r] + slope[r] * shift + (aim[i] - p[i] * dq[i]) / q[i] - p[i]
                rest -= slope[r] * dq[i]
                dp[i] = -lack[r] - used[r] - slope[r] * shift
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


@njit(cache=True)
def _demand(num, den, off, level, need, slope, curve):  # type: ignore[no-untyped-def]
    """What the level demands of each row, with first and second derivative."""
    for r in range(len(num)):
        left = den[r] - off[r] * level
        need[r] = num[r] * level / left
        slope[r] = num[r] * den[r] / (left * left)
        curve[r] = 2.0 * slope[r] * off[r] / left


@njit(cache=True)
def _pole(level, shift, num, den, off):  # type: ignore[no-untyped-def]
    """How far the level may move before a row's demand grows beyond all bounds."""
    far = 1.0
    for r in range(len(num)):
        if num[r] > 0.0 and off[r] * shift > 0.0:
            far = min(far, 0.9 * (den[r] / off[r] - level) / shift)
    return far


@njit(cache=True)
def _uneven(p, q, weight, middle):  # type: ignore[no-untyped-def]
    """How far the products ``p q`` are from those of the central path, relatively."""
    worst = 0.0
    for i in range(len(p)):
        if weight[i] > 0.0:
            worst = max(worst, abs(p[i] * q[i] / (middle * weight[i]) - 1.0))
    return worst


@njit(cache=True)
def _reach(values, steps):  # type: ignore[no-untyped-def]
    """How far one may step before a value turns negative; a whole step at most."""
    far = 1.0
    for i in range(len(values)):
        if steps[i] < 0.0:
            far = min(far, -values[i] / steps[i])
    return far


@njit(cache=True)
def _apply(start, index, value, x, out):  # type: ignore[no-untyped-def]
    """out = A x."""
    for r in range(len(out)):
        out[r] = 0.0
    for c in range(len(start) - 1):
        for e in range(start[c], start[c + 1]):
            out[index[e]] += value[e] * x[c]


@njit(cache=True)
def _push(start, index, value, q, columns, c):  # type: ignore[no-untyped-def]
    """Column c of A, weighed with the prices of its rows."""
    total = 0.0
    for e in range(start[c], start[c + 1]):
        total += value[e] * q[columns + index[e]]
    return total
