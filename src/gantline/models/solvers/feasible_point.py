"""Some point of a polyhedron: where a primal-dual method on the homogeneous embedding stops when it is asked for nothing but feasibility.

A program without a goal has a whole body of answers, and every solver returns another one. ECOS (Domahidi, Chu and Boyd, ECC 2013), which
Gavel's artifact uses, scales rows and columns three times by the roots of their largest entries, starts from the least-squares point pushed
into the cone, takes Mehrotra's predictor-corrector steps and stops as soon as residuals and gap are below 1e-8: inside, but not in the
centre. These are its rules for linear constraints ``G x <= h``, with exact Newton systems in place of regularised ones; answers agree
to four digits and more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gantline.core.arrays import Floats

Solve = Callable[[Floats], Floats]

TOLERANCE = 1e-8
WIDE = 32  # entries of a row
SCALINGS = 3
SHORTEN = 0.99  # of the way to the wall
LONGEST, SHORTEST = 0.999, 1e-6
LEAST_CENTRING = 1e-4


def feasible_point(matrix: sparse.csc_array, bound: Floats, budget: int = 100) -> Floats | None:
    """A point with ``matrix @ x <= bound``, the one at which the method stops; None: it did not get there within so many steps."""
    G, rows, columns = _scaled(matrix)
    h = bound / rows
    Gt = sparse.csc_array(G.T)
    m, n = G.shape
    normal = _Normal(G)
    x = normal.factored(np.ones(m))(Gt @ h)
    s, z = _into_cone(h - G @ x), np.ones(m)
    tau = kappa = 1.0
    rows0 = max(1.0, _norm(h))
    for _ in range(budget):
        rx, rz, rt = -(Gt @ z), s + G @ x - h * tau, kappa + float(h @ z)
        gap = float(s @ z)
        primal = _norm(rz) / (rows0 + _norm(x) + _norm(s)) / tau
        dual = _norm(rx) / (1.0 + _norm(z)) / tau
        if -float(h @ z) >= -TOLERANCE and primal < TOLERANCE and dual < TOLERANCE and gap < TOLERANCE:
            return np.asarray(x / tau / columns)
        mu = (gap + kappa * tau) / (m + 1)
        w, lam = np.sqrt(s / z), np.sqrt(s * z)
        inverse = normal.factored(1.0 / (w * w))

        def solve(bx: Floats, bz: Floats, w: Floats = w, inverse: Solve = inverse) -> tuple[Floats, Floats]:
            """dx, dz with G' dz = bx and G dx - w^2 dz = bz."""
            dx = inverse(bx + Gt @ (bz / (w * w)))
            for _ in range(2):  # what rounding left
                dx = dx + inverse(bx - Gt @ ((G @ dx - bz) / (w * w)))
            return dx, (G @ dx - bz) / (w * w)

        dx1, dz1 = solve(np.zeros(n), h)
        below = kappa / tau - float(h @ dz1)
        # where the goal alone would lead
        dx2, dz2 = solve(rx, s - rz)
        dtau = (rt - kappa + float(h @ dz2)) / below
        wdz = w * (dz2 + dtau * dz1)
        ds = -wdz - lam
        dkappa = -kappa - kappa / tau * dtau
        sigma = min(max((1.0 - _reach(lam, ds, wdz, tau, dtau, kappa, dkappa)) ** 3, LEAST_CENTRING), 1.0)
        # and with the middle in view
        aim = lam * lam + ds * wdz - sigma * mu
        dx2, dz2 = solve((1.0 - sigma) * rx, -(1.0 - sigma) * rz + w * (aim / lam))
        push = kappa * tau + dkappa * dtau - sigma * mu
        dtau = ((1.0 - sigma) * rt - push / tau + float(h @ dz2)) / below
        dx, dz = dx2 + dtau * dx1, dz2 + dtau * dz1
        ds = -(aim / lam + w * dz)
        dkappa = -(push + kappa * dtau) / tau
        step = SHORTEN * _reach(lam, ds, w * dz, tau, dtau, kappa, dkappa)
        x, z, s = x + step * dx, z + step * dz, s + step * (w * ds)
        tau, kappa = tau + step * dtau, kappa + step * dkappa
    return None


class _Normal:
    """``G' diag(weight) G`` for changing weights; rows that touch many columns are put in as corrections of low rank."""

    def __init__(self, G: sparse.csc_array) -> None:
        by_row = sparse.csr_array(G)
        wide = np.diff(by_row.indptr) > WIDE
        self.rows, self.wide = np.flatnonzero(~wide), np.flatnonzero(wide)
        self.narrow, self.across = sparse.csc_array(by_row[self.rows]), by_row[self.wide].toarray()

    def factored(self, weight: Floats) -> Solve:
        base = splu(sparse.csc_array(self.narrow.T @ sparse.diags_array(weight[self.rows]) @ self.narrow))
        spread = base.solve(self.across.T)
        core = np.diag(1.0 / weight[self.wide]) + self.across @ spread

        def solve(right: Floats) -> Floats:
            first = base.solve(right)
            return np.asarray(first - spread @ np.linalg.solve(core, self.across @ first) if len(self.wide) else first)

        return solve


def _scaled(matrix: sparse.csc_array) -> tuple[sparse.csc_array, Floats, Floats]:
    """The matrix with rows and columns divided so that their largest entries are near one, and what they were divided by."""
    G = sparse.csc_array(matrix, dtype=np.float64)
    rows, columns = np.ones(G.shape[0]), np.ones(G.shape[1])
    for _ in range(SCALINGS):
        size = abs(G)
        own = [np.asarray(size.max(axis=axis).todense()).ravel() for axis in (1, 0)]
        by_row, by_column = (np.where(most < 1e-6, 1.0, np.sqrt(most)) for most in own)
        G = sparse.csc_array(sparse.diags_array(1.0 / by_row) @ G @ sparse.diags_array(1.0 / by_column))
        rows, columns = rows * by_row, columns * by_column
    return G, rows, columns


def _norm(values: Floats) -> float:
    return float(np.linalg.norm(values))


def _into_cone(r: Floats) -> Floats:
    """Slacks pushed up by one more than the worst of them lacks."""
    return np.asarray(r + 1.0 + max(-SHORTEN, float(-r[r <= 0].min()) if (r <= 0).any() else -SHORTEN))


def _reach(lam: Floats, ds: Floats, dz: Floats, tau: float, dtau: float, kappa: float, dkappa: float) -> float:
    """How far one may go before a slack, a price or either number of the embedding turns negative."""
    worst = max(-float((ds / lam).min()), -float((dz / lam).min()))
    far = 1.0 / worst if worst > 0 else 1e13
    for value, change in ((tau, dtau), (kappa, dkappa)):
        if change < 0:
            far = min(far, -value / change)
    return min(max(far, SHORTEST), LONGEST)
