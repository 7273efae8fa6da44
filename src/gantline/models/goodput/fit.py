"""The seven parameters from what was observed: a compiled fit of some ten microseconds, and the artifact's.

Both minimise the same loss under the same bounds. The compiled one is a bounded Levenberg-Marquardt method on the logs of
the six times and on gamma. The loss is a sum of *roots* of mean squares, so each step takes the squares with the weights
that make their slope equal the roots' slope (iteratively reweighted least squares); a step is kept only if the loss itself
falls. The artifact's is SciPy's L-BFGS-B from the artifact's start with its stopping rule, where it matters to end where
Pollux (tolerance None) or Sia (1e-5) ends, which often is not the minimum.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel
from gantline.models.goodput.loss import GROWTH_PENALTY, OVERLAP_PENALTY, loss_and_gradient
from gantline.models.goodput.observations import (
    BATCH,
    LOG_COMPUTE,
    LOG_STEP,
    NODES,
    REPLICAS,
    Observations,
    set_priors,
    spread_is_dearer,
)
from gantline.models.goodput.speed_model import (
    ALPHA_C,
    ALPHA_N,
    ALPHA_R,
    BETA_C,
    BETA_N,
    BETA_R,
    GAMMA,
    TINY,
    SpeedModel,
    gradient_time,
    sync_time,
)

_START: Final = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
_LEAST_ERROR: Final = 1e-4  # below this an error no longer gains weight, or a perfect row would drown all others
_LONGEST_STEP: Final = 3.0  # a factor of twenty in a time
_MOST_STEPS: Final = 60
_ENOUGH: Final = 1e-6  # a relative fall of the loss after which it is not worth going on
WORK: Final = (27, 7)  # what `fit_rows` wants to work with


def fit(seen: Observations, parameters: Floats | None = None) -> SpeedModel:
    """The model that fits the rows best, by the compiled method; ``parameters`` may hold an earlier answer to begin with."""
    found = np.zeros(7) if parameters is None else parameters.copy()
    fit_rows(seen.rows, found, np.zeros(WORK), parameters is not None)
    return SpeedModel(found)


def fit_like_artifact(seen: Observations, tolerance: float | None = None) -> SpeedModel:
    """The model where L-BFGS-B stops from the artifact's start; Sia's simulator stops at a tolerance of 1e-5."""
    low, high, gradient, work = np.zeros(7), np.zeros(7), np.zeros(7), np.zeros((4, 7))
    set_priors(seen.rows, low, high)
    start = np.clip(np.array(_START), low, high)

    def loss(p: Floats) -> tuple[float, Floats]:
        return float(loss_and_gradient(p, seen.rows, gradient, work)), gradient.copy()

    bounds: object = list(zip(low, high))
    from scipy import optimize  # slow to import, and most runs fit nothing

    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, tol=tolerance)
    best = np.clip(np.asarray(found.x, dtype=np.float64), low, high)
    spread_is_dearer(seen.rows, best)
    return SpeedModel(best)


@kernel
def fit_rows(rows: Floats, p: Floats, work: Floats, warm: bool) -> float:
    """Fit ``p`` to the rows, from itself if ``warm``; the loss that is left."""
    low, high = work[0], work[1]
    set_priors(rows, low, high)
    if not warm:
        _start(rows, p)
    _clip(p, low, high)
    left = _descend(rows, p, low, high, work)
    spread_is_dearer(rows, p)
    return left


@kernel
def _copy(source: Floats, target: Floats) -> None:
    for k in range(7):
        target[k] = source[k]


@kernel
def _clip(p: Floats, low: Floats, high: Floats) -> None:
    for k in range(7):
        p[k] = min(max(p[k], low[k]), high[k])


@kernel
def _start(rows: Floats, p: Floats) -> None:
    """A line through the times without averaging, by relative error, and the mean of what averaging adds."""
    w = wb = wbb = wt = wbt = 0.0
    across = within = count_across = count_within = 0.0
    for i in range(rows.shape[0]):
        compute, step, batch = math.exp(rows[i, LOG_COMPUTE]), math.exp(rows[i, LOG_STEP]), rows[i, BATCH]
        weight = 1.0 / (compute * compute)
        w += weight
        wb += weight * batch
        wbb += weight * batch * batch
        wt += weight * compute
        wbt += weight * batch * compute
        if rows[i, NODES] > 1:
            across += max(step - compute, 0.01 * step)
            count_across += 1.0
        elif rows[i, REPLICAS] > 1:
            within += max(step - compute, 0.01 * step)
            count_within += 1.0
    spread = w * wbb - wb * wb
    slope = (w * wbt - wb * wt) / spread if spread > 1e-12 * w * wbb else 0.5 * wbt / wbb
    slope = max(slope, 1e-3 * wt / wb)
    p[BETA_C] = slope
    p[ALPHA_C] = max((wt - slope * wb) / w, 1e-3 * wt / w)
    p[ALPHA_N] = across / count_across if count_across > 0.0 else TINY
    p[ALPHA_R] = within / count_within if count_within > 0.0 else TINY
    p[BETA_N], p[BETA_R], p[GAMMA] = 0.01 * p[ALPHA_N], 0.01 * p[ALPHA_R], 1.001


@kernel
def _descend(rows: Floats, p: Floats, low: Floats, high: Floats, work: Floats) -> float:
    """Damped, reweighted Gauss-Newton steps until the loss no longer falls; the loss that is left."""
    here, there = work[2:10], work[10:18]  # sums of products of slopes, and below them the slopes of the loss
    trial, step, factor = work[18], work[19], work[20:27]
    left = _sums(rows, p, here)
    damping = 1e-3
    for _ in range(_MOST_STEPS):
        fell = 0.0
        while damping < 1e8:
            if not _solve(here, p, low, high, damping, factor, step):
                damping *= 10.0
                continue
            for k in range(7):
                move = max(-_LONGEST_STEP, min(_LONGEST_STEP, step[k]))
                trial[k] = p[k] + move if k == GAMMA else p[k] * math.exp(move)
            _clip(trial, low, high)
            found = _sums(rows, trial, there)
            if found < left:
                fell = (left - found) / max(left, 1e-12)
                left = found
                _copy(trial, p)
                here, there = there, here
                damping = max(damping * 0.1, 1e-9)
                break
            damping *= 6.0
        if fell < _ENOUGH:
            break
    return left


@kernel
def _sums(rows: Floats, p: Floats, normal: Floats) -> float:
    """The loss, and the sums of products of slopes by the logs of the times and by gamma, each error with its root's weight.

    A row moves with computing, gamma and the averaging of its own kind, across nodes or within one: five slopes of seven. They are
    ``c`` and ``b`` (fixed and per example), ``g``, and ``s`` and ``m`` (fixed and per replica), which are at the place of their kind.
    """
    count, gamma = rows.shape[0], p[GAMMA]
    gradient = normal[7]
    normal[:] = 0.0
    squares_compute, squares_step = 0.0, 0.0
    cc = cb = bb = gc = gb = 0.0  # only two parameters move the time without averaging
    for i in range(count):
        batch, nodes, replicas = rows[i, BATCH], rows[i, NODES], rows[i, REPLICAS]
        compute, sync = gradient_time(p, batch), sync_time(p, int(nodes), int(replicas))
        log_compute, log_sync = math.log(compute), math.log(sync)
        high = max(log_compute, log_sync)
        part = math.exp(gamma * (min(log_compute, log_sync) - high))
        log_step = high + math.log1p(part) / gamma
        share = (1.0 if log_compute >= log_sync else part) / (1.0 + part)  # of computing in the gamma-norm
        of_compute, of_step = log_compute - rows[i, LOG_COMPUTE], log_step - rows[i, LOG_STEP]
        squares_compute += of_compute * of_compute
        squares_step += of_step * of_step
        c, b = 1.0 / compute * p[ALPHA_C], batch / compute * p[BETA_C]
        cc += c * c
        cb += c * b
        bb += b * b
        gc += c * of_compute
        gb += b * of_compute
        c, b = share / compute * p[ALPHA_C], share * batch / compute * p[BETA_C]
        g = (share * log_compute + (1.0 - share) * log_sync - log_step) / gamma
        gradient[ALPHA_C] += c * of_step
        gradient[BETA_C] += b * of_step
        gradient[GAMMA] += g * of_step
        normal[ALPHA_C, ALPHA_C] += c * c
        normal[BETA_C, ALPHA_C] += b * c
        normal[BETA_C, BETA_C] += b * b
        normal[GAMMA, ALPHA_C] += g * c
        normal[GAMMA, BETA_C] += g * b
        normal[GAMMA, GAMMA] += g * g
        if replicas > 1 or nodes > 1:
            alpha = ALPHA_N if nodes > 1 else ALPHA_R
            s = (1.0 - share) / sync * p[alpha]
            m = (1.0 - share) * max(replicas - 2.0, TINY) / sync * p[alpha + 1]
            gradient[alpha] += s * of_step
            gradient[alpha + 1] += m * of_step
            normal[alpha, ALPHA_C] += s * c
            normal[alpha, BETA_C] += s * b
            normal[alpha, alpha] += s * s
            normal[alpha + 1, ALPHA_C] += m * c
            normal[alpha + 1, BETA_C] += m * b
            normal[alpha + 1, alpha] += m * s
            normal[alpha + 1, alpha + 1] += m * m
            normal[GAMMA, alpha] += g * s
            normal[GAMMA, alpha + 1] += g * m
    error_compute, error_step = math.sqrt(squares_compute / count), math.sqrt(squares_step / count)
    weight_compute, weight_step = 0.5 / count / max(error_compute, _LEAST_ERROR), 0.5 / count / max(error_step, _LEAST_ERROR)
    for k in range(7):
        gradient[k] *= weight_step
        for j in range(k + 1):
            normal[k, j] *= weight_step
    normal[ALPHA_C, ALPHA_C] += weight_compute * cc
    normal[BETA_C, ALPHA_C] += weight_compute * cb
    normal[BETA_C, BETA_C] += weight_compute * bb
    gradient[ALPHA_C] += weight_compute * gc
    gradient[BETA_C] += weight_compute * gb
    gradient[GAMMA] += OVERLAP_PENALTY * (p[GAMMA] - 1.0)
    normal[GAMMA, GAMMA] += OVERLAP_PENALTY
    value = error_compute + error_step + OVERLAP_PENALTY * (p[GAMMA] - 1.0) ** 2
    for alpha, beta in ((ALPHA_N, BETA_N), (ALPHA_R, BETA_R)):
        growth = GROWTH_PENALTY * (p[beta] / p[alpha]) ** 2  # its root has slopes +1 by log beta and -1 by log alpha
        value += growth
        gradient[beta] += growth
        gradient[alpha] -= growth
        normal[beta, beta] += growth
        normal[alpha, alpha] += growth
        normal[beta, alpha] -= growth
    return float(value)


@kernel
def _solve(normal: Floats, p: Floats, low: Floats, high: Floats, damping: float, factor: Floats, step: Floats) -> bool:
    """The step of the free parameters by Cholesky; False if the matrix is not positive. Those at a bound that push outwards stay."""
    gradient = normal[7]
    for k in range(7):
        free = low[k] < high[k] and not (p[k] <= low[k] and gradient[k] > 0.0) and not (p[k] >= high[k] and gradient[k] < 0.0)
        step[k] = -gradient[k] if free else 0.0
        for j in range(k):
            factor[k, j] = normal[k, j] if free and factor[j, j] != 0.0 else 0.0
        factor[k, k] = normal[k, k] * (1.0 + damping) + 1e-12 if free else 0.0
    for k in range(7):
        if factor[k, k] == 0.0:
            continue
        for j in range(k):
            if factor[j, j] == 0.0:
                continue
            value = factor[k, j]
            for i in range(j):
                value -= factor[k, i] * factor[j, i]
            factor[k, j] = value / factor[j, j]
        value = factor[k, k]
        for i in range(k):
            value -= factor[k, i] * factor[k, i]
        if value <= 0.0:
            return False
        factor[k, k] = math.sqrt(value)
        for i in range(k):
            step[k] -= factor[k, i] * step[i]
        step[k] /= factor[k, k]
    for k in range(6, -1, -1):
        if factor[k, k] == 0.0:
            continue
        for i in range(k + 1, 7):
            step[k] -= factor[i, k] * step[i]
        step[k] /= factor[k, k]
    return True
