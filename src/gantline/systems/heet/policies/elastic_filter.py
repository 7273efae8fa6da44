"""Speeds that were not measured, from those that were: collaborative filtering over jobs, device types and counts.

Logarithms of speeds, each job's relative to its own, are a mean, a number per job, type and count, and a sum of a few products of one
factor each (a canonical polyadic model with biases; Funk's SVD is the form with two axes), fitted by alternating ridge regressions. A
new job is known from a few cells; the others' rows say how jobs like it scale. Heet (ASPLOS 2024) estimates elastic configurations so; its
formulas could not be read, these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError

_FIRST = 1e-3  # ridge of what needs none: biases, types and counts


@dataclass(frozen=True)
class ElasticFilter:
    """How the filter is fitted."""

    rank: int = 2
    ridge: float = 0.1
    sweeps: int = 20

    def __post_init__(self) -> None:
        if self.rank < 1 or self.sweeps < 1 or not self.ridge > 0.0:
            what = f"rank {self.rank}, {self.sweeps} sweeps, ridge {self.ridge}"
            raise UsageError(what, where="elastic filter", fix="use for example rank 2, 20 sweeps, ridge 0.1")

    def complete(self, speed: Floats) -> Floats:
        """Speeds [job, type, count] with every gap (NaN, zero or less) filled; known cells stay as they are."""
        known = np.isfinite(speed) & (np.nan_to_num(speed) > 0.0)
        if speed.ndim != 3:
            raise UsageError(f"speeds have {speed.ndim} axes", where="elastic filter", fix="jobs, types and counts")
        if not known.any():
            raise UsageError("not one speed is known", where="elastic filter", fix="measure a few configurations of each job")
        logs = np.where(known, np.log(np.where(known, speed, 1.0)), 0.0)
        count = known.sum(axis=(1, 2))
        own = np.where(count > 0, logs.sum(axis=(1, 2)) / np.maximum(count, 1), 0.0)
        own[count == 0] = own[count > 0].mean()
        centred = np.where(known, logs - own[:, None, None], 0.0)
        guess = own[:, None, None] + self._fit(centred, known)
        found: Floats = np.where(known, speed, np.exp(guess))
        return found

    def _fit(self, logs: Floats, known: NDArray[np.bool_]) -> Floats:
        """The model in every cell: each axis in turn is regressed on the two others."""
        mean = logs[known].mean()
        bias = [np.zeros(size) for size in logs.shape]
        factor = [np.zeros((logs.shape[0], self.rank)), *_start(logs.shape[1], logs.shape[2], self.rank)]
        typical, weight = np.zeros(self.rank), known.sum(axis=(1, 2)).astype(np.float64)
        for _ in range(self.sweeps):
            for axis in (0, 1, 2):
                one, two = (other for other in range(3) if other != axis)
                rest = mean + bias[one][:, None] + bias[two][None, :]
                product = (factor[one][:, None, :] * factor[two][None, :, :]).reshape(-1, self.rank)
                design = np.concatenate([np.ones((len(product), 1)), product], axis=1)
                target = (np.moveaxis(logs, axis, 0) - rest[None]).reshape(logs.shape[axis], -1)
                seen = np.moveaxis(known, axis, 0).reshape(logs.shape[axis], -1)
                if axis == 0:  # jobs of which little is known are drawn to a typical one
                    bias[0], deviation = self._regress(design, target - product @ typical, seen, self.ridge)
                    factor[0] = deviation + typical
                else:
                    bias[axis], factor[axis] = self._regress(design, target, seen, _FIRST)
            _balance(factor)
            typical = weight @ factor[0] / weight.sum()
        found: Floats = mean + _outer(bias) + np.einsum("jr,tr,kr->jtk", *factor)
        return found

    def _regress(self, design: Floats, target: Floats, seen: NDArray[np.bool_], ridge: float) -> tuple[Floats, Floats]:
        """Ridge regressions on one design, a row of targets each: biases and factors."""
        weight = seen.astype(np.float64)
        width = self.rank + 1
        square = (weight @ (design[:, :, None] * design[:, None, :]).reshape(-1, width * width)).reshape(-1, width, width)
        square += np.diag([_FIRST, *[ridge] * self.rank])
        found = np.linalg.solve(square, ((weight * target) @ design)[:, :, None])[:, :, 0]
        bias: Floats = found[:, 0].astype(np.float64)
        return bias, found[:, 1:].astype(np.float64)


def _start(types: int, counts: int, rank: int) -> tuple[Floats, Floats]:
    """What the regressions begin with: the first product differs by type alone, the second by count alone, others by both, in waves."""
    waves = [np.cos(np.pi * np.outer(np.arange(size) + 0.5, np.arange(rank) // 2 + 1.0) / size) for size in (types, counts)]
    waves[0][:, 1:2] = waves[1][:, 0:1] = 1.0
    return waves[0], waves[1]


def _balance(factor: list[Floats]) -> None:
    """Types and counts of spread one, in place: all of a product's size is in the jobs, whose spread the ridge is about."""
    for axis in (1, 2):
        spread = np.maximum(np.sqrt((factor[axis] ** 2).mean(axis=0)), 1e-9)
        factor[axis] /= spread
        factor[0] *= spread


def _outer(bias: list[Floats]) -> Floats:
    found: Floats = bias[0][:, None, None] + bias[1][None, :, None] + bias[2][None, None, :]
    return found
