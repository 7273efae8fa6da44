"""How large a job's batch is: what a larger one is worth, and the best split for a placement (Pollux, OSDI 2021).

A job's total batch is ``replicas * local * (accumulation + 1)``. What a job may do and what a policy assumes are both
`BatchLimits`, and they need not be the same value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import kernel
from gantline.models.goodput.speed_model import GAMMA, gradient_time, overlapped, sync_time

CANDIDATES: Final = 50
_SLIP: Final = 1e-8  # so that 8.000000001 is 8

# columns of limits, as kernels take them
BASE, MOST, LOCAL_LEAST, LOCAL_MOST, ACCUMULATES = range(5)
# columns of an answer
GOODPUT, LOCAL, ACCUMULATION = range(3)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Which batches there are: in all from ``base`` to ``most``, on one device from ``local_least`` to ``local_most``."""

    base: float
    most: float
    local_least: float
    local_most: float
    accumulates: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.most:
            raise UsageError(f"batches from {self.base:g} to {self.most:g} are none", where="batch limits")
        if not 0 < self.local_least <= self.local_most:
            raise UsageError(f"local batches from {self.local_least:g} to {self.local_most:g} are none", where="batch limits")

    def row(self) -> Floats:
        """The limits as kernels take them."""
        return np.array([self.base, self.most, self.local_least, self.local_most, float(self.accumulates)])


class BatchChoice(NamedTuple):
    """A local batch and accumulation steps, and the goodput that is expected of them (0: there is no valid batch)."""

    goodput: float
    local: int
    accumulation: int


@kernel
def ceiling(value: float) -> float:
    """The next whole number, with a little slack for rounding."""
    return math.ceil(value - _SLIP)


@kernel
def accumulation_for(local: float, local_most: float, alone_and_large: bool) -> float:
    """Steps without averaging so that a local batch fits; a replica alone takes one at least, to see gradient noise."""
    steps = ceiling(local / local_most) - 1.0
    return max(steps, 1.0) if alone_and_large else max(steps, 0.0)


@kernel
def split(total: float, replicas: int, limits: Floats, out: Floats) -> None:
    """The local batch and accumulation that a wanted total batch becomes, cut off so that the largest batch is not passed."""
    local = ceiling(total / replicas)
    steps = 0.0
    if limits[ACCUMULATES] > 0.0:
        steps = accumulation_for(local, limits[LOCAL_MOST], replicas == 1 and total > limits[BASE])
    out[LOCAL] = ceiling(local / (steps + 1.0))
    out[ACCUMULATION] = steps
    cut(replicas, limits, out)


@kernel
def cut(replicas: int, limits: Floats, out: Floats) -> None:
    """No total batch above the largest: rounding up must not lead past it."""
    out[LOCAL] = min(out[LOCAL], math.floor(limits[MOST] / (replicas * (out[ACCUMULATION] + 1.0))))


@kernel
def choose_batch(p: Floats, square: float, variance: float, nodes: int, replicas: int, limits: Floats, out: Floats) -> None:
    """The best of fifty total batches, evenly spread on a logarithmic scale; goodput 0 if none is valid.

    Computing the overlap costs most, so it is left out where even full overlap could not win.
    """
    base, most, least, largest = limits[BASE], limits[MOST], limits[LOCAL_LEAST], limits[LOCAL_MOST]
    out[GOODPUT], out[LOCAL], out[ACCUMULATION] = 0.0, 0.0, 0.0
    low = max(base, least * replicas)
    ratio = (most / low) ** (1.0 / (CANDIDATES - 1))
    sync = sync_time(p, nodes, replicas)
    total, before_local, before_steps = low, -1.0, -1.0
    for i in range(CANDIDATES):
        if i == CANDIDATES - 1:
            total = most
        wanted = total / replicas
        total *= ratio
        steps = 0.0
        if limits[ACCUMULATES] > 0.0:
            steps = accumulation_for(wanted, largest, replicas == 1 and wanted > base)
        local = ceiling(wanted / (steps + 1.0))
        if local < least or local > largest or (local == before_local and steps == before_steps):
            continue
        before_local, before_steps = local, steps
        real = replicas * local * (steps + 1.0)
        compute = gradient_time(p, local)
        worth = base * gain(square, variance, real / base)  # examples at the base batch
        if worth <= out[GOODPUT] * (steps * compute + max(compute, sync)):
            continue
        value = worth / (steps * compute + overlapped(compute, sync, p[GAMMA]))
        if value > out[GOODPUT]:
            out[GOODPUT], out[LOCAL], out[ACCUMULATION] = value, local, steps


@kernel
def goodput_curve(p: Floats, square: float, variance: float, nodes: int, replicas: Ints, limits: Floats, out: Floats) -> None:
    """The best goodput for each number of replicas, all on so many nodes; ``out`` has three more places to work with."""
    count = replicas.size
    for i in range(count):
        choose_batch(p, square, variance, nodes, replicas[i], limits, out[count:])
        out[i] = out[count + GOODPUT]


def best_batch(parameters: Floats, square: float, variance: float, nodes: int, replicas: int, limits: BatchLimits) -> BatchChoice:
    """The local batch and accumulation with the best goodput on so many replicas and nodes."""
    out = np.zeros(3)
    choose_batch(parameters, square, variance, nodes, replicas, limits.row(), out)
    return BatchChoice(float(out[GOODPUT]), int(out[LOCAL]), int(out[ACCUMULATION]))


def split_batch(total: float, replicas: int, limits: BatchLimits) -> tuple[int, int]:
    """The local batch and the accumulation steps for a given total batch."""
    out = np.zeros(3)
    split(total, replicas, limits.row(), out)
    return int(out[LOCAL]), int(out[ACCUMULATION])


# How much a larger batch is worth: statistical efficiency from gradient noise (Pollux, OSDI 2021, section 3.1).
#
# ``square`` is the estimate of the squared norm of the true gradient, ``variance`` that of the trace of its
# covariance at the batch the job was written for (``base``). Work is counted in steps at that batch.


@kernel
def gain(square: float, variance: float, scale: float) -> float:
    """Steps at the base batch that one step at ``scale`` times that batch is worth; 1 where the noise says nothing."""
    below = variance / scale + square
    if not (below > 0.0 and variance + square > 0.0):
        return 1.0
    return (variance + square) / below
