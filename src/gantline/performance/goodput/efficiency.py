"""How much a larger batch is worth: statistical efficiency from gradient noise (Pollux, OSDI 2021, section 3.1).

``square`` is the estimate of the squared norm of the true gradient, ``variance`` that of the trace of its covariance at
the batch the job was written for (``base``). Work is counted in steps at that batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.jit import kernel


@kernel
def gain(square: float, variance: float, scale: float) -> float:
    """Steps at the base batch that one step at ``scale`` times that batch is worth; 1 where the noise says nothing."""
    below = variance / scale + square
    if not (below > 0.0 and variance + square > 0.0):
        return 1.0
    return (variance + square) / below


@kernel
def efficiency(square: float, variance: float, scale: float) -> float:
    """Progress per example, as a share of that at the base batch."""
    return gain(square, variance, scale) / scale


@dataclass(frozen=True, slots=True)
class GradientNoise:
    """Gradient statistics of a job at one time; before anything is measured every example counts fully."""

    square: float = 0.0
    variance: float = 1.0

    def gain(self, scale: float) -> float:
        return float(gain(self.square, self.variance, scale))

    def efficiency(self, scale: float) -> float:
        return float(efficiency(self.square, self.variance, scale))

    def noise_scale(self, base: float) -> float:
        """The batch at which half of the efficiency is gone, near enough: PGNS."""
        return base * self.variance / self.square if self.square > 0.0 else float("inf")
