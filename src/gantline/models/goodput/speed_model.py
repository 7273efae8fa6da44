"""How long a training step takes: Pollux' model (OSDI 2021, section 3.2), and the observations it is fitted to.

A step computes gradients, for ``accumulation`` times without communication and then once more while they are averaged
over all replicas; ``gamma`` says how far computing and averaging overlap (1: one after the other, 10: hardly
noticed). A replica alone averages with none; replicas on one node and on several have parameters of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
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

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(NAMES, self.parameters))


# What a job has shown of its speed so far: one row per (nodes, replicas, local batch), and what cannot be known from
# it yet.
#
# Pollux assumes the best of what was never tried (OSDI 2021, section 4.1): without a row across nodes, averaging
# across nodes costs nothing, and so on. That optimism is what makes a job be tried on more devices.

# columns of rows, as kernels take them; times as logarithms, which is what is fitted
NODES, REPLICAS, BATCH, LOG_COMPUTE, LOG_STEP = range(5)
ROW: Final = 5


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows of (nodes, replicas, local batch, log of the seconds without averaging, log of those with)."""

    rows: Floats

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> Observations:
        """From rows of (nodes, replicas, local batch, seconds without averaging, seconds with), each checked."""
        table = np.array(list(rows), dtype=np.float64).reshape(-1, ROW)
        if not len(table):
            raise UsageError("nothing was observed yet", where="speed model")
        bad = ~(np.isfinite(table).all(axis=1) & (table > 0.0).all(axis=1))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise UsageError(f"row {row} is {table[row].tolist()}", where="speed model", fix="counts, batch and times are above zero")
        table[:, LOG_COMPUTE:] = np.log(table[:, LOG_COMPUTE:])
        return cls(table)


@kernel
def set_priors(rows: Floats, low: Floats, high: Floats) -> None:
    """The bounds of the seven parameters; one that the rows say nothing about is held at its most hopeful value."""
    for i in range(7):
        low[i], high[i] = TINY, np.inf
    low[GAMMA], high[GAMMA] = 1.0, MOST_GAMMA
    one_batch, across, within, beyond_two, total = True, False, False, False, 0.0
    for i in range(rows.shape[0]):
        one_batch = one_batch and rows[i, BATCH] == rows[0, BATCH]
        across = across or rows[i, NODES] > 1
        within = within or (rows[i, NODES] == 1 and rows[i, REPLICAS] > 1)
        beyond_two = beyond_two or rows[i, REPLICAS] > 2
        total += math.exp(rows[i, LOG_COMPUTE])
    if one_batch:
        low[ALPHA_C] = high[ALPHA_C] = total / rows.shape[0] / 2.0
    if not across:
        high[ALPHA_N] = high[BETA_N] = TINY
    if not within:
        high[ALPHA_R] = high[BETA_R] = TINY
    if not beyond_two:
        high[BETA_N] = high[BETA_R] = TINY


@kernel
def spread_is_dearer(rows: Floats, p: Floats) -> None:
    """Without a row across nodes, averaging across them costs a tenth more than within one, at least."""
    for i in range(rows.shape[0]):
        if rows[i, NODES] > 1:
            return
    p[ALPHA_N] = max(p[ALPHA_N], 1.1 * p[ALPHA_R])
    p[BETA_N] = max(p[BETA_N], 1.1 * p[BETA_R])
