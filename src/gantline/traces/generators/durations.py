"""How long jobs run: distributions given by their quantile function, so that one uniform number makes one duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from gantline.core.arrays import Floats


class Duration(Protocol):
    """A distribution of run times in seconds."""

    def quantile(self, uniforms: Floats) -> Floats:
        """The durations at these probabilities."""
        ...


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Pieces ``(low, high, weight)``: choose a piece by weight, then be uniform in the logarithm inside it."""

    pieces: tuple[tuple[float, float, float], ...]

    def quantile(self, uniforms: Floats) -> Floats:
        low, high, weight = (np.array(column, dtype=np.float64) for column in zip(*self.pieces, strict=True))
        share = weight / weight.sum()
        steps = np.concatenate(([0.0], np.cumsum(share)))
        which = np.minimum(np.searchsorted(steps, uniforms, side="right") - 1, len(share) - 1)
        inside = np.clip((uniforms - steps[which]) / share[which], 0.0, 1.0)
        return low[which] * (high[which] / low[which]) ** inside


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The logarithm is normal: ``median`` in seconds, ``sigma`` the spread of the natural logarithm."""

    median: float
    sigma: float

    def quantile(self, uniforms: Floats) -> Floats:
        return self.median * np.exp(self.sigma * ndtri(np.maximum(uniforms, 1e-12)))


@dataclass(frozen=True, slots=True)
class Weibull:
    """Weibull with a ``scale`` in seconds; a ``shape`` below one has a long tail."""

    scale: float
    shape: float

    def quantile(self, uniforms: Floats) -> Floats:
        return self.scale * (-np.log1p(-uniforms)) ** (1.0 / self.shape)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """An empirical curve of ``(probability, seconds)`` points from 0 to 1, straight in the logarithm between them."""

    points: tuple[tuple[float, float], ...]

    def quantile(self, uniforms: Floats) -> Floats:
        chances, values = (np.array(column, dtype=np.float64) for column in zip(*self.points, strict=True))
        return np.exp(np.interp(uniforms, chances, np.log(values)))


@dataclass(frozen=True, slots=True)
class BySize:
    """Another distribution for each range of GPU counts: ``(fewest, most, distribution)``."""

    classes: tuple[tuple[int, int, Duration], ...]

    def of(self, gpus: int) -> Duration | None:
        """The distribution of jobs with this many GPUs."""
        return next((dist for fewest, most, dist in self.classes if fewest <= gpus <= most), None)
