"""How many epochs a training has left, from the losses it has reported (Optimus, Peng et al., EuroSys 2018, section 3.1).

Losses follow l(k) = 1 / (b0 k + b1) + b2 with b >= 0, and training has converged when an epoch lowers the loss by no more than the user's
`drop`. For a given b2 the reciprocal 1 / (l - b2) is linear in k, so that non-negative least squares in two unknowns find the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats

FEWEST_POINTS = 3
UNKNOWN_LEFT = 20.0  # epochs that are assumed to be left while too few are known
MOST_EPOCHS = 1000.0
_NEIGHBOURS = 5
_FLOORS = np.linspace(0.0, 0.999, 40)  # b2 as a part of the smallest loss


class LossCurve(NamedTuple):
    """l(k) = 1 / (slope k + start) + floor."""

    slope: float
    start: float
    floor: float

    def loss(self, epoch: float) -> float:
        """The loss after so many epochs."""
        return 1.0 / (self.slope * epoch + self.start) + self.floor

    def converged(self, drop: float) -> float:
        """The first epoch, as a real number, from which on one more lowers the loss by no more than `drop`."""
        b, c = self.slope, self.start
        if b <= 0.0 or drop <= 0.0:
            return 0.0 if b <= 0.0 else math.inf
        # b / (x (x + b)) = drop with x = b k + c
        x = 0.5 * (math.sqrt(b * b + 4.0 * b / drop) - b)
        return max((x - c) / b, 0.0)


def smoothed(losses: Floats) -> Floats:
    """Outliers, outside of what the five epochs before and after them allow, become the mean of their neighbours."""
    found = losses.copy()
    for k in range(1, len(losses) - 1):
        low, high = losses[k + 1 : k + 1 + _NEIGHBOURS].min(), losses[max(k - _NEIGHBOURS, 0) : k].max()
        if not low <= losses[k] <= high:
            found[k] = 0.5 * (losses[k - 1] + losses[k + 1])
    return found


def fit_losses(points: Sequence[Sequence[float]]) -> LossCurve | None:
    """The curve through (epoch, loss) points, later ones counting more; None: too few."""
    if len(points) < FEWEST_POINTS:
        return None
    epoch, losses = np.array(points, dtype=np.float64).T
    scale = losses.max()
    losses = smoothed(losses / scale)
    weight = 16.0 ** np.floor(3.0 * np.arange(len(losses)) / len(losses))  # thirds, each four times as trusted as the one before
    floors = _FLOORS * losses.min()
    y = 1.0 / (losses[None, :] - floors[:, None])
    slope, start = two_unknowns(epoch, y, weight)
    with np.errstate(divide="ignore"):
        guess = 1.0 / (slope[:, None] * epoch[None, :] + start[:, None]) + floors[:, None]
    error = (weight * (guess - losses) ** 2).sum(axis=1)
    error[~np.isfinite(error)] = np.inf
    best = int(np.argmin(error))
    return LossCurve(float(slope[best] / scale), float(start[best] / scale), float(floors[best] * scale))


def two_unknowns(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Slopes and intercepts, none below zero, of weighted lines through each row of `y`."""
    one, sx, sxx = weight.sum(), (weight * x).sum(), (weight * x * x).sum()
    sy, sxy = y @ weight, y @ (weight * x)
    det = one * sxx - sx * sx
    slope = (one * sxy - sx * sy) / det if det > 0.0 else np.zeros(len(y))
    start = (sy - slope * sx) / one
    only_slope, only_start = np.maximum(sxy / sxx, 0.0) if sxx > 0.0 else np.zeros(len(y)), np.maximum(sy / one, 0.0)
    # at the edge the better of the two lines that keep one unknown at zero
    gain_slope, gain_start = only_slope * (2.0 * sxy - only_slope * sxx), only_start * (2.0 * sy - only_start * one)
    inside, steep = (slope >= 0.0) & (start >= 0.0), gain_slope > gain_start
    return np.where(inside, slope, np.where(steep, only_slope, 0.0)), np.where(inside, start, np.where(steep, 0.0, only_start))


def epochs_left(points: Sequence[Sequence[float]], drop: float, done: float) -> float:
    """Estimated epochs to go after `done`, never less than a part of one; a guess while too few losses are known."""
    curve = fit_losses(points)
    if curve is None or curve.slope <= 0.0:
        return UNKNOWN_LEFT
    return max(min(curve.converged(drop), MOST_EPOCHS) - done, 0.1)
