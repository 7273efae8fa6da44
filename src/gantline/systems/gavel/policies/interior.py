"""The central answer: a primal-dual interior-point method with one barrier term per job, however many share a column.

The artifact's solver stops inside the optimal face, near its analytic centre, and that is part of Gavel's behaviour: nearly
every solve has more than one optimum. The centre is unique and symmetric, so it depends on nothing but the instance:
not on the history of a solver, not on the order of jobs. Weighting each barrier term by the number of jobs it stands for
makes the answer over kinds equal to the answer over jobs, iterate by iterate.

The problem is ``maximise gain . x + sum(bend * log x) + level`` subject to ``A x + demand(level) <= bound`` and
``x >= 0``, where the convex ``demand`` of a row is ``num * level / (den - off * level)``. A logarithm in the goal is a
barrier that is never taken down: its column and its price keep the product ``bend``. Mehrotra's predictor-corrector
steps; the normal equations are solved by :mod:`.newton`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled_numpy
from gantline.systems.gavel.policies.newton import (
    InteriorProgram,
    Iterate,
    Residuals,
    Step,
    apply,
    demand,
    eliminate,
    newton_step,
    pole,
    push,
    reach,
    shorten,
    uneven,
)

TOLERANCE = 1e-9
NEAR = 1e-4  # where the path is followed closely
NEARLY = 1e-5  # what is still an answer when rounding stops the progress


@dataclass(frozen=True, slots=True)
class LinearProblem:
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
    tolerance: float = TOLERANCE


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


def climb(problem: LinearProblem, x: Floats, level: float = 0.0, *, budget: int = 100) -> Point:
    """Solve from the given strictly positive columns; ``budget`` counts steps."""
    rows = len(problem.bound)
    if not len(x):
        return Point(x, level, np.zeros(rows), 0.0, 0)
    program = InteriorProgram(
        (problem.start, problem.index, problem.value),
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
    )
    x, level, price, gap, iterations = _climb(program, np.array(x, dtype=np.float64), float(level), budget, problem.tolerance)
    return Point(x, level, price, gap, iterations)


@compiled_numpy
def _climb(program: InteriorProgram, x: Floats, level: float, budget: int, tolerance: float) -> tuple[Floats, float, Floats, float, int]:
    """The method itself."""
    matrix, bound, _, w, gain, bend, kinds, arrow, levelled, num, den, off = program
    columns, rows = len(x), len(bound)
    size = columns + rows
    p, q, weight = np.ones(size), np.zeros(size), np.zeros(size)
    dp, dq, aim = np.zeros(size), np.zeros(size), np.zeros(size)
    at, step = Iterate(p, q, weight), Step(dp, dq)
    need, slope, curve = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    lack, dual, inverse = np.zeros(rows), np.zeros(columns), np.zeros(columns)
    direction = 1.0 if levelled else 0.0

    demand(num, den, off, level, need, slope, curve)
    mass = _begin(program, x, level, direction, need, slope, at)
    curved = off.max() > 0.0 or bend.max() > 0.0

    best, best_p, best_q, best_level = np.inf, p.copy(), q.copy(), level
    steps = stalled = 0
    centred, middle, centring, short = False, 0.0, 0, False
    while True:
        demand(num, den, off, level, need, slope, curve)
        apply(matrix, p, lack)
        worst, worth, pull, bow = 0.0, direction * level, -direction, 0.0
        for r in range(rows):
            if w[r] > 0.0:
                lack[r] += need[r] + p[columns + r] - bound[r]
                worst = max(worst, abs(lack[r]) / (1.0 + abs(bound[r])))
                pull += slope[r] * q[columns + r]
                bow += curve[r] * q[columns + r]
        wrong = abs(pull * level)
        for c in range(columns):
            dual[c] = push(matrix, q, columns, c) - gain[c] - q[c]
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
        if merit <= tolerance or stalled > 8 or steps >= budget:
            break
        steps += 1
        if not centred and merit < NEAR:  # from here on the path is followed closely, so that it ends in the centre
            middle = gap / mass if middle == 0.0 else middle
            centring += 1
            centred = uneven(p, q, weight, middle) < 0.02 or centring > 20

        missed = Residuals(dual, inverse, lack, slope, pull, bow)
        factors = eliminate(matrix, inverse, p[columns:], q[columns:], w, kinds, arrow)
        for i in range(size):
            aim[i] = bend[i] if i < columns else 0.0
        if short or (middle > 0.0 and not centred):  # back to the path: after a step that hit a wall, or to stay close
            for i in range(size):
                aim[i] += (middle if middle > 0.0 and not centred else gap / mass) * weight[i]
        else:  # predictor: towards complementarity 0
            newton_step(program, at, aim, missed, factors, step)
            far_p, far_q = reach(p, dp), reach(q, dq)
            ahead = 0.0
            for i in range(size):
                ahead += (p[i] + far_p * dp[i]) * (q[i] + far_q * dq[i]) if weight[i] > 0.0 else 0.0
            sigma = min(max((max(ahead, 0.0) / gap) ** 3, 1e-4), 0.9)
            if curved and worst > gap / (1.0 + abs(worth)):
                sigma = max(sigma, 0.5)  # complementarity must not run ahead of feasibility
            for i in range(size):  # corrector: towards the central path, less the products that the predictor neglects
                aim[i] += sigma * gap / mass * weight[i] - dp[i] * dq[i]
        shift = newton_step(program, at, aim, missed, factors, step)
        far_p = 0.99 * min(reach(p, dp), pole(level, shift, num, den, off))
        far_q = 0.99 * reach(q, dq)
        if curved:
            far_p = far_q = shorten(p, q, dp, dq, weight, bend, mass, min(far_p, far_q))
        if not np.isfinite(far_p + far_q + shift):
            break
        short = not short and min(far_p, far_q) < 0.1
        level += far_p * shift
        for i in range(size):
            p[i] += far_p * dp[i]
            q[i] += far_q * dq[i]
    return best_p[:columns], best_level, best_q[columns:], best, steps


@compiled_numpy
def _begin(program: InteriorProgram, x: Floats, level: float, direction: float, need: Floats, slope: Floats, at: Iterate) -> float:
    """Write the first point: slacks of the given columns, and prices on the central path; returns the sum of weights."""
    matrix, bound, v, w, gain, bend = program.matrix, program.bound, program.column_weight, program.row_weight, program.gain, program.bend
    start, index, value = matrix
    p, q, weight = at.p, at.q, at.weight
    columns, rows = len(x), len(bound)
    used = np.zeros(rows)
    for c in range(columns):
        p[c], weight[c] = x[c], v[c]
    apply(matrix, p, used)
    mass, worth, asked, paid = 0.0, direction * level, direction, 0.0
    for r in range(rows):
        weight[columns + r] = w[r]
        if w[r] > 0.0:
            p[columns + r] = max(bound[r] - used[r] - need[r], 1e-3 * max(1.0, abs(bound[r])))
        paid += direction * slope[r] * w[r] / p[columns + r]
    for c in range(columns):
        worth += gain[c] * x[c] + bend[c]
        if direction == 0.0:
            asked += gain[c] * x[c] + bend[c]
            for e in range(start[c], start[c + 1]):
                paid += x[c] * max(value[e], 0.0) * w[index[e]] / p[columns + index[e]]
    for i in range(columns + rows):
        mass += weight[i]
    # The barrier is high enough that the prices of the rows can balance what the goal asks for.
    mu = max(abs(worth) / mass, asked / paid, 1e-3 / mass)
    for i in range(columns + rows):
        q[i] = mu * weight[i] / p[i]
    for c in range(columns):
        if bend[c] > 0.0:
            q[c] = bend[c] / p[c]
    return mass
