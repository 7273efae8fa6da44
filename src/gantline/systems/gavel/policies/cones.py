"""Products of half-lines and second-order cones of three rows, with what a primal-dual method asks of them.

The first rows are numbers that must not be negative; then come triples ``(a, b, c)`` with ``a >= |(b, c)|``. The scaling is Nesterov's and
Todd's: a symmetric ``W`` with ``W z = inverse(W) s`` (written down by Domahidi, Chu and Boyd, ECC 2013, section II).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats

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

    def reach(self, at: Floats, *ways: Floats) -> float:
        """How far one may go from a point inside, along all of these directions, before one leaves a cone."""
        numbers, triples = self.split(at)
        norm = _norm(triples)
        base = triples / norm
        worst = 0.0
        for way in ways:
            p, q = self.split(way)
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
