"""How long a training step takes: Pollux' model with seven parameters (OSDI 2021, section 3.2).

A step computes gradients, for ``accumulation`` times without communication and then once more while they are averaged
over all replicas; ``gamma`` says how far computing and averaging overlap (1: one after the other, 10: hardly noticed).
A replica alone averages with none; replicas on one node and on several have parameters of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.arrays import Floats
from gantline.core.jit import kernel

NAMES: Final = ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma")
ALPHA_C, BETA_C, ALPHA_N, BETA_N, ALPHA_R, BETA_R, GAMMA = range(7)
TINY: Final = 1e-8  # in place of zero where a logarithm is taken
MOST_GAMMA: Final = 10.0


@kernel
def gradient_time(p: Floats, batch: float) -> float:
    """Seconds for the gradients of a local batch."""
    return float(p[ALPHA_C] + p[BETA_C] * batch)


@kernel
def sync_time(p: Floats, nodes: int, replicas: int) -> float:
    """Seconds for averaging gradients over the replicas."""
    more = max(replicas - 2.0, TINY)
    if nodes > 1:
        return float(p[ALPHA_N] + p[BETA_N] * more)
    if replicas > 1:
        return float(p[ALPHA_R] + p[BETA_R] * more)
    return TINY + TINY * more


@kernel
def overlapped(a: float, b: float, gamma: float) -> float:
    """The gamma-norm of two times: their sum for 1, nearly the larger for 10."""
    high, low = max(a, b), min(a, b)
    if high <= 0.0:
        return 0.0
    ratio = low / high
    if ratio < 1e-12:
        return high
    return high * math.exp(math.log1p(math.exp(gamma * math.log(ratio))) / gamma)


@kernel
def step_time(p: Floats, nodes: int, replicas: int, batch: float, accumulation: int) -> float:
    """Seconds from one update of the weights to the next."""
    compute = gradient_time(p, batch)
    return accumulation * compute + overlapped(compute, sync_time(p, nodes, replicas), p[GAMMA])


@dataclass(frozen=True, slots=True)
class SpeedModel:
    """Seven parameters and what follows from them."""

    parameters: Floats

    def __post_init__(self) -> None:
        if self.parameters.shape != (7,):
            raise ValueError("a speed model has seven parameters: " + ", ".join(NAMES))

    def step_time(self, nodes: ArrayLike, replicas: ArrayLike, batch: ArrayLike, accumulation: ArrayLike = 0) -> Floats:
        """Seconds a step; numbers or arrays of them."""
        times = np.vectorize(lambda *given: step_time(self.parameters, *given), otypes=[float])
        return np.asarray(times(nodes, replicas, batch, accumulation))

    def throughput(self, nodes: ArrayLike, replicas: ArrayLike, batch: ArrayLike, accumulation: ArrayLike = 0) -> Floats:
        """Examples a second."""
        total = np.asarray(replicas) * np.asarray(batch) * (np.asarray(accumulation) + 1.0)
        return np.asarray(total / self.step_time(nodes, replicas, batch, accumulation))

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(NAMES, self.parameters))
