"""Where a primal-dual method on the homogeneous embedding stops, for programs whose goal leaves most of the answer open.

A goal that looks at the job that is worst off has a whole body of answers, and every solver returns another. ECOS (Domahidi, Chu and Boyd,
ECC 2013), which Gavel's artifact uses, scales rows and columns three times by the roots of their largest entries (the rows of a cone by
the sum of theirs), starts from least-squares points pushed into the cone, takes Mehrotra's predictor-corrector steps and stops as soon as
residuals and gap are below 1e-8: inside, but not in the centre. It adds 7e-8 to the diagonal of its Newton systems and means it, with
the wrong sign in the last row of each cone. With these rules the steps agree with its own to twelve digits, until rounding takes over near
the end. `embedded` is the same for programs without goal and cones, by smaller systems that do without the 7e-8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gantline.core.arrays import Floats

# Products of half-lines and second-order cones of three rows, with what a primal-dual method asks of them.
#
# The first rows are numbers that must not be negative; then come triples ``(a, b, c)`` with ``a >= |(b, c)|``. The scaling is Nesterov's
# and Todd's: a symmetric ``W`` with ``W z = inverse(W) s`` (written down by Domahidi, Chu and Boyd, ECC 2013, section II).

SIZE = 3
LONGEST, SHORTEST = 0.999, 1e-6  # steps
ENDLESS = 1e13
PUSH = 0.99


@dataclass(frozen=True, slots=True)
class Cones:
    """So many numbers, then so many triples."""

    numbers: int
    triples: int

    @property
    def degree(self) -> int:
        return self.numbers + self.triples

    @property
    def unit(self) -> Floats:
        return self.join(np.ones(self.numbers), np.tile([1.0, 0.0, 0.0], (self.triples, 1)))

    def split(self, v: Floats) -> tuple[Floats, Floats]:
        return v[: self.numbers], v[self.numbers :].reshape(self.triples, SIZE)

    def join(self, numbers: Floats, triples: Floats) -> Floats:
        return np.concatenate((numbers, triples.ravel()))

    def room(self, v: Floats) -> Floats:
        """How far inside every cone a point is."""
        numbers, triples = self.split(v)
        return np.concatenate((numbers, triples[:, 0] - np.hypot(triples[:, 1], triples[:, 2])))

    def moved_inside(self, v: Floats) -> Floats:
        """Pushed along the unit by one more than the worst cone lacks."""
        room = self.room(v)
        lacking = room <= 0
        return v + (1.0 + max(-PUSH, float(-room[lacking].min()) if lacking.any() else -PUSH)) * self.unit

    def times(self, u: Floats, v: Floats) -> Floats:
        """The Jordan product."""
        (a, b), (p, q) = self.split(u), self.split(v)
        first, rest = (b * q).sum(axis=1, keepdims=True), b[:, :1] * q[:, 1:] + q[:, :1] * b[:, 1:]
        return self.join(a * p, np.hstack((first, rest)))

    def divided(self, v: Floats, u: Floats) -> Floats:
        """What gives ``v`` when multiplied by ``u``."""
        (a, b), (p, q) = self.split(u), self.split(v)
        head, tail = b[:, :1], b[:, 1:]
        along = (tail * q[:, 1:]).sum(axis=1, keepdims=True)
        size = head**2 - (tail**2).sum(axis=1, keepdims=True)
        return self.join(p / a, np.hstack(((head * q[:, :1] - along) / size, (along / head - q[:, :1]) / size * tail + q[:, 1:] / head)))

    def reach(self, at: Floats, *variants: Floats) -> float:
        """How far one may go from a point inside, along all of these directions, before one leaves a cone."""
        numbers, triples = self.split(at)
        norm = _norm(triples)
        base = triples / norm
        worst = 0.0
        for variant in variants:
            p, q = self.split(variant)
            flat = _flat(base, q)
            rest = q[:, 1:] - (flat + q[:, :1]) / (base[:, :1] + 1.0) * base[:, 1:]
            outwards = (np.hypot(rest[:, 0], rest[:, 1]) - flat[:, 0]) / norm[:, 0]
            worst = max(worst, float((-p / numbers).max(initial=0.0)), float(outwards.max(initial=0.0)))
        return 1.0 / worst if worst > 0 else ENDLESS


@dataclass(frozen=True)
class ConeScaling:
    """The scaling of a pair of points inside: a root per number, and per triple ``size * (mean, its mirror)``."""

    cones: Cones
    roots: Floats
    sizes: Floats  # [triples, 1]
    means: Floats  # [triples, 3]

    @staticmethod
    def between(cones: Cones, s: Floats, z: Floats) -> ConeScaling:
        (a, b), (p, q) = cones.split(s), cones.split(z)
        s_norm, z_norm = _norm(b), _norm(q)
        b, q = b / s_norm, q / z_norm
        half = 2.0 * np.sqrt(0.5 * (1.0 + (b * q).sum(axis=1, keepdims=True)))
        return ConeScaling(cones, np.sqrt(a / p), np.sqrt(s_norm / z_norm), (b + q * [1.0, -1.0, -1.0]) / half)

    @staticmethod
    def none(cones: Cones) -> ConeScaling:
        return ConeScaling(cones, np.ones(cones.numbers), np.ones((cones.triples, 1)), np.tile([1.0, 0.0, 0.0], (cones.triples, 1)))

    def __matmul__(self, v: Floats) -> Floats:
        numbers, triples = self.cones.split(v)
        head, tail = self.means[:, :1], self.means[:, 1:]
        along = (tail * triples[:, 1:]).sum(axis=1, keepdims=True)
        rest = triples[:, 1:] + (triples[:, :1] + along / (1.0 + head)) * tail
        return self.cones.join(self.roots * numbers, self.sizes * np.hstack((head * triples[:, :1] + along, rest)))

    def squared(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The square without the scale: a diagonal, plus the square of one vector, less that of another; and the scale.

        Written out, its entries would drown its smallest eigenvalue.
        """
        head, tail = self.means[:, :1], self.means[:, 1:]
        w = (tail**2).sum(axis=1, keepdims=True)
        c, d = 1.0 + head + w / (1.0 + head), 1.0 + 2.0 / (1.0 + head) + w / (1.0 + head) ** 2
        first = np.maximum(0.0, 0.5 * (head**2 + w * (1.0 - c**2 / (1.0 + w * d))))
        added = np.sqrt(head**2 + w - first)
        diagonal = np.hstack((first, np.ones_like(tail)))
        return diagonal, np.hstack((added, c / added * tail)), np.sqrt(np.maximum((c / added) ** 2 - d, 0.0)) * tail, self.sizes**2


def _norm(triples: Floats) -> Floats:
    """The root of what the first entry has before the others; NaN outside."""
    return np.asarray(np.sqrt(triples[:, :1] ** 2 - (triples[:, 1:] ** 2).sum(axis=1, keepdims=True)))


def _flat(one: Floats, other: Floats) -> Floats:
    return np.asarray(one[:, :1] * other[:, :1] - (one[:, 1:] * other[:, 1:]).sum(axis=1, keepdims=True))


Newton = Callable[[Floats, Floats], tuple[Floats, Floats]]

TOLERANCE = 1e-8
SCALINGS = 3
SHORTEN = 0.99  # of the way to the wall
LEAST_CENTRING = 1e-4
LIFT = 7e-8  # of the diagonal
REFINEMENTS, GAIN, EXACT = 9, 6.0, 1e-14


def stopping_point(goal: Floats, matrix: sparse.csc_array, bound: Floats, cones: int = 0, budget: int = 100) -> Floats | None:
    """Where it stops on the way to the smallest ``goal @ x`` with ``bound - matrix @ x`` not negative and its last rows in so many cones.

    None: it did not get there within so many steps, or lost its way.
    """
    shape = Cones(matrix.shape[0] - SIZE * cones, cones)
    G, rows, columns = _scaled(matrix, shape)
    try:
        with np.errstate(all="ignore"):
            found = _walk(goal / columns, G, bound / rows, shape, budget)
    except RuntimeError:  # a singular system
        return None
    return None if found is None or not np.isfinite(found).all() else np.asarray(found / columns)


def _walk(c: Floats, G: sparse.csc_array, h: Floats, cones: Cones, budget: int) -> Floats | None:
    Gt, systems, unit = sparse.csc_array(G.T), _Systems(G, cones), cones.unit
    newton = systems.factored(ConeScaling.none(cones))
    x, slack = newton(np.zeros(len(c)), h)
    s = cones.moved_inside(-slack)
    z = cones.moved_inside(newton(-c, np.zeros(len(h)))[1])
    tau = kappa = 1.0
    h_size, c_size = max(1.0, _length(h)), max(1.0, _length(c))
    for _ in range(budget):
        rx, rz, rt = -(Gt @ z) - c * tau, s + G @ x - h * tau, kappa + float(c @ x + h @ z)
        gap = float(s @ z)
        primal = _length(rz) / (h_size + _length(x) + _length(s)) / tau
        dual = _length(rx) / (c_size + _length(z)) / tau
        if primal < TOLERANCE and dual < TOLERANCE and _close(gap, float(c @ x), -float(h @ z), tau):
            return np.asarray(x / tau)
        mu = (gap + kappa * tau) / (cones.degree + 1)
        w = ConeScaling.between(cones, s, z)
        lam = w @ z
        newton = systems.factored(w)

        def reach(ds: Floats, dz: Floats, dtau: float, dkappa: float, lam: Floats = lam, tau: float = tau, kappa: float = kappa) -> float:
            far = cones.reach(lam, ds, dz)
            for value, change in ((tau, dtau), (kappa, dkappa)):
                if change < 0:
                    far = min(far, -value / change)
            return min(max(far, SHORTEST), LONGEST)

        dx1, dz1 = newton(-c, h)
        below = kappa / tau - float(c @ dx1 + h @ dz1)
        # where the goal alone would lead
        dx2, dz2 = newton(rx, s - rz)
        dtau = (rt - kappa + float(c @ dx2 + h @ dz2)) / below
        dz = w @ (dz2 + dtau * dz1)
        ds = -dz - lam
        dkappa = -kappa - kappa / tau * dtau
        sigma = min(max((1.0 - reach(ds, dz, dtau, dkappa)) ** 3, LEAST_CENTRING), 1.0)
        # and with the middle in view
        aim = cones.divided(cones.times(lam, lam) + cones.times(ds, dz) - sigma * mu * unit, lam)
        dx2, dz2 = newton((1.0 - sigma) * rx, -(1.0 - sigma) * rz + w @ aim)
        push = kappa * tau + dkappa * dtau - sigma * mu
        dtau = ((1.0 - sigma) * rt - push / tau + float(c @ dx2 + h @ dz2)) / below
        dx, dz = dx2 + dtau * dx1, dz2 + dtau * dz1
        ds = -(aim + w @ dz)
        dkappa = -(push + kappa * dtau) / tau
        step = SHORTEN * reach(ds, w @ dz, dtau, dkappa)
        x, z, s = x + step * dx, z + step * dz, s + step * (w @ ds)
        tau, kappa = tau + step * dtau, kappa + step * dkappa
        if not tau > 0:
            return None
    return None


def _close(gap: float, primal: float, dual: float, tau: float) -> bool:
    """Whether the two objectives are near enough, absolutely or by their size."""
    size = -primal if primal < 0 else max(dual, 0.0)
    return (primal < 0 or dual >= -TOLERANCE) and (gap < TOLERANCE or gap * tau < TOLERANCE * size)


class _Systems:
    """``lift x + G' z = a, G x - (W W + lift) z = b`` for changing scalings: which entries there are does not change.

    The square of a cone's scaling is a diagonal and two vectors, which two more unknowns per cone carry.
    """

    def __init__(self, G: sparse.csc_array, cones: Cones) -> None:
        m, n = G.shape
        entries = sparse.coo_array(G)
        row, column = entries.coords
        cone = (cones.numbers + SIZE * np.arange(cones.triples))[:, None] + np.arange(SIZE)
        more = m + np.arange(2 * cones.triples).reshape(2, cones.triples, 1)
        less_at, plus_at = [(cone[:, 1:], more[0] + 0 * cone[:, 1:]), (cone, more[1] + 0 * cone)]
        i, j = np.arange(m + 2 * cones.triples), np.arange(m + 2 * cones.triples)
        for one, other in (less_at, less_at[::-1], plus_at, plus_at[::-1]):
            i, j = np.concatenate((i, one.ravel())), np.concatenate((j, other.ravel()))
        i, j = np.concatenate((np.arange(n), column, n + row, n + i)), np.concatenate((np.arange(n), n + row, column, n + j))
        size = n + m + 2 * cones.triples
        self._order = sparse.csc_array((np.arange(len(i)), (i, j)), shape=(size, size))
        self._known = np.concatenate((np.full(n, LIFT), entries.data, entries.data))
        self._lift = cones.join(np.full(cones.numbers, LIFT), np.tile([LIFT, LIFT, -LIFT], (cones.triples, 1)))
        self._columns, self._rows = n, m

    def factored(self, w: ConeScaling) -> Newton:
        diagonal, plus, less, scale = w.squared()
        own = -w.cones.join(w.roots**2, scale * diagonal) - self._lift
        less, plus, scale = -(scale * less).ravel(), -(scale * plus).ravel(), scale.ravel()
        values = np.concatenate((self._known, own, -scale, scale, less, less, plus, plus))
        pattern = self._order
        places = pattern.indices.copy(), pattern.indptr.copy()  # SciPy 1.13 writes to them while it factors
        system = sparse.csc_array((values[pattern.data], *places), shape=pattern.shape)
        more = np.zeros(2 * w.cones.triples)
        factors = splu(system, permc_spec="MMD_AT_PLUS_A")

        def newton(a: Floats, b: Floats) -> tuple[Floats, Floats]:
            right = np.concatenate((a, b, more))
            found = factors.solve(right)
            wrong = right - system @ found
            for _ in range(REFINEMENTS):
                before = float(np.abs(wrong).max())
                if before < EXACT * (1.0 + float(np.abs(right).max())):
                    break
                better = found + factors.solve(wrong)
                wrong = right - system @ better
                now = float(np.abs(wrong).max())
                if not now < before:
                    break
                found = better
                if before < GAIN * now:
                    break
            return found[: self._columns], found[self._columns : self._columns + self._rows]

        return newton


def _scaled(matrix: sparse.csc_array, cones: Cones) -> tuple[sparse.csc_array, Floats, Floats]:
    """The matrix with rows and columns divided so that their largest entries are near one, and what they were divided by."""
    G = sparse.csc_array(matrix, dtype=np.float64)
    rows, columns = np.ones(G.shape[0]), np.ones(G.shape[1])
    for _ in range(SCALINGS):
        size = abs(G)
        by_row, by_column = (np.asarray(size.max(axis=axis).todense()).ravel() for axis in (1, 0))
        numbers, triples = cones.split(by_row)
        by_row = cones.join(numbers, np.repeat(triples.sum(axis=1, keepdims=True), SIZE, axis=1))
        by_row, by_column = (np.where(most < 1e-6, 1.0, np.sqrt(most)) for most in (by_row, by_column))
        G = sparse.csc_array(sparse.diags_array(1.0 / by_row) @ G @ sparse.diags_array(1.0 / by_column))
        rows, columns = rows * by_row, columns * by_column
    return G, rows, columns


def _length(values: Floats) -> float:
    return float(np.linalg.norm(values))
