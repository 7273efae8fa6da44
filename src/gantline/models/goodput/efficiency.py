"""How much a larger batch is worth: statistical efficiency from gradient noise (Pollux, OSDI 2021, section 3.1).

``square`` is the estimate of the squared norm of the true gradient, ``variance`` that of the trace of its covariance at
the batch the job was written for (``base``). Work is counted in steps at that batch.
"""

from __future__ import annotations

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
