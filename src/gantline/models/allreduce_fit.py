"""The constants of GenModel from timed AllReduces: a linear regression for every threshold, and the threshold that leaves least.

Bandwidth and additions occur in one proportion in every plan (B = 2 C), so that they are found together, as 2 beta + gamma.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.models.allreduce import AllReducePlan, CostConstants

_LEAST = 5


class TimedAllReduce(NamedTuple):
    """One measurement."""

    plan: AllReducePlan
    servers: int
    size: float
    seconds: float


class CostFit(NamedTuple):
    """The constants, with all of 2 beta + gamma as beta, and the mean relative error of what they predict."""

    constants: CostConstants
    error: float


def fit_costs(timed: Sequence[TimedAllReduce]) -> CostFit:
    """The constants that explain the measurements best; without a plan beyond the threshold there is no incast to be found."""
    if len(timed) < _LEAST:
        raise UsageError(f"{len(timed)} measurements", where="fit of AllReduce", fix=f"time at least {_LEAST}, of several plans and sizes")
    if any(not 0.0 < one.seconds < math.inf for one in timed):
        raise UsageError("a measurement takes no time, or for ever", where="fit of AllReduce", fix="seconds above zero")
    seconds = np.array([one.seconds for one in timed])
    widest = max(level.fan_in for one in timed for level in one.plan.levels(one.servers, one.size))
    best: tuple[float, Floats, int] | None = None
    for threshold in range(1, widest + 1):
        columns = np.array([_counts(one, threshold) for one in timed])
        found = _least_squares(columns, seconds)
        residual = float(((columns @ found / seconds - 1.0) ** 2).sum())
        if best is None or residual < best[0] - 1e-18:
            best = residual, found, threshold
    assert best is not None
    _, (alpha, sent, delta, epsilon), threshold = best
    columns = np.array([_counts(one, threshold) for one in timed])
    error = float(np.abs(columns @ best[1] / seconds - 1.0).mean())
    alpha, sent, delta, epsilon = (max(0.0, float(one)) for one in (alpha, sent, delta, epsilon))
    return CostFit(CostConstants(alpha, sent / 2.0, 0.0, delta, epsilon, threshold), error)


def _counts(one: TimedAllReduce, threshold: int) -> tuple[float, float, float, float]:
    """Rounds, additions, accesses and data in excess of the threshold."""
    levels = one.plan.levels(one.servers, one.size)
    excess = sum(max(level.fan_in - threshold, 0) * level.data for level in levels)
    return (
        float(sum(level.rounds for level in levels)), sum(level.additions for level in levels),
        sum(level.accesses for level in levels), excess,
    )  # fmt: skip


def _least_squares(columns: Floats, seconds: Floats) -> Floats:
    """Relative errors count, so that short AllReduces are as good as long ones; a column that says nothing gets zero."""
    weighted = columns / seconds[:, None]
    scale = np.sqrt((weighted**2).sum(axis=0))
    used = scale > 0.0
    found = np.zeros(columns.shape[1])
    found[used] = np.linalg.lstsq(weighted[:, used] / scale[used], np.ones(len(seconds)), rcond=None)[0] / scale[used]
    return found
