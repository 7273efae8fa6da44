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
from gantline.models.goodput.speed_model import (
    ALPHA_C,
    ALPHA_N,
    ALPHA_R,
    BATCH,
    BETA_C,
    BETA_N,
    BETA_R,
    GAMMA,
    LOG_COMPUTE,
    LOG_STEP,
    NODES,
    REPLICAS,
    TINY,
    Observations,
    SpeedModel,
    gradient_time,
    set_priors,
    spread_is_dearer,
    sync_time,
)

_START: Final = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
_LEAST_ERROR: Final = 1e-4  # below this an error no longer gains weight, or a perfect row would drown all others
_LONGEST_STEP: Final = 3.0  # a factor of twenty in a time
_MOST_STEPS: Final = 60
_ENOUGH: Final = 1e-6  # a relative fall of the loss after which it is not worth going on
WORK: Final = (31, 7)  # what `fit_rows` wants to work with


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
    from scipy import optimize  # slow to import: a plain run fits nothing

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
    left = _sums(rows, p, here, work[27:])
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
            found = _sums(rows, trial, there, work[27:])
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
def _sums(rows: Floats, p: Floats, normal: Floats, work: Floats) -> float:
    """The loss, and the sums of products of slopes by the logs of the times and by gamma, each error with its root's weight.

    ``work`` is four rows of seven: two for the slopes of a row, two for the products of the slopes of the time without averaging,
    which only two parameters move.
    """
    count, gradient, slope, compute = rows.shape[0], normal[7], work[0:2], work[2:4]
    normal[:] = 0.0
    compute[:] = 0.0
    squares_compute, squares_step = 0.0, 0.0
    for i in range(count):
        of_compute, of_step = residuals(p, rows[i], slope)
        squares_compute += of_compute * of_compute
        squares_step += of_step * of_step
        for k in range(7):
            if k != GAMMA:  # of the others the logs count
                slope[0, k] *= p[k]
                slope[1, k] *= p[k]
        for k in range(2):
            compute[k, 2] += slope[0, k] * of_compute
            for j in range(k + 1):
                compute[k, j] += slope[0, k] * slope[0, j]
        for k in range(7):
            gradient[k] += slope[1, k] * of_step
            for j in range(k + 1):
                normal[k, j] += slope[1, k] * slope[1, j]
    error_compute, error_step = math.sqrt(squares_compute / count), math.sqrt(squares_step / count)
    weight_compute, weight_step = 0.5 / count / max(error_compute, _LEAST_ERROR), 0.5 / count / max(error_step, _LEAST_ERROR)
    for k in range(7):
        gradient[k] *= weight_step
        for j in range(k + 1):
            normal[k, j] *= weight_step
    for k in range(2):
        gradient[k] += weight_compute * compute[k, 2]
        for j in range(k + 1):
            normal[k, j] += weight_compute * compute[k, j]
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


# How badly a speed model fits its rows, and in which direction it fits better: Pollux' loss with its analytic
# gradient.
#
# The root mean square error of log times, without and with averaging, plus penalties that keep overlap and the growth
# of averaging time small where the rows do not ask for them.

OVERLAP_PENALTY: Final = 1e-3
GROWTH_PENALTY: Final = 1e-2


@kernel
def residuals(p: Floats, row: Floats, slope: Floats) -> tuple[float, float]:
    """The two log errors of a row, and their slopes by the parameters in ``slope[0]`` and ``slope[1]``."""
    batch, nodes, replicas = row[BATCH], row[NODES], row[REPLICAS]
    compute, sync, gamma = gradient_time(p, batch), sync_time(p, int(nodes), int(replicas)), p[GAMMA]
    log_compute, log_sync = math.log(compute), math.log(sync)
    if log_compute >= log_sync:
        part = math.exp(gamma * (log_sync - log_compute))
        log_step = log_compute + math.log1p(part) / gamma
        share = 1.0 / (1.0 + part)  # of computing in the gamma-norm
    else:
        part = math.exp(gamma * (log_compute - log_sync))
        log_step = log_sync + math.log1p(part) / gamma
        share = part / (1.0 + part)
    slope[:] = 0.0
    slope[0, ALPHA_C], slope[0, BETA_C] = 1.0 / compute, batch / compute
    slope[1, ALPHA_C], slope[1, BETA_C] = share / compute, share * batch / compute
    more = max(replicas - 2.0, TINY)
    if nodes > 1:
        slope[1, ALPHA_N], slope[1, BETA_N] = (1.0 - share) / sync, (1.0 - share) * more / sync
    elif replicas > 1:
        slope[1, ALPHA_R], slope[1, BETA_R] = (1.0 - share) / sync, (1.0 - share) * more / sync
    slope[1, GAMMA] = (share * log_compute + (1.0 - share) * log_sync - log_step) / gamma
    return log_compute - row[LOG_COMPUTE], log_step - row[LOG_STEP]


@kernel
def loss_and_gradient(p: Floats, rows: Floats, gradient: Floats, work: Floats) -> float:
    """The loss; its gradient goes into ``gradient``. ``work`` is four rows of seven to work with."""
    count = rows.shape[0]
    slope, total = work[0:2], work[2:4]
    total[:] = 0.0
    squares_compute, squares_step = 0.0, 0.0
    for i in range(count):
        of_compute, of_step = residuals(p, rows[i], slope)
        squares_compute += of_compute * of_compute
        squares_step += of_step * of_step
        for k in range(7):
            total[0, k] += of_compute * slope[0, k]
            total[1, k] += of_step * slope[1, k]
    error_compute, error_step = math.sqrt(squares_compute / count), math.sqrt(squares_step / count)
    for k in range(7):
        gradient[k] = 0.0
        if error_compute > 0.0:
            gradient[k] += total[0, k] / (count * error_compute)
        if error_step > 0.0:
            gradient[k] += total[1, k] / (count * error_step)
    gradient[GAMMA] += 2.0 * OVERLAP_PENALTY * (p[GAMMA] - 1.0)
    value = error_compute + error_step + OVERLAP_PENALTY * (p[GAMMA] - 1.0) ** 2
    for alpha, beta in ((ALPHA_N, BETA_N), (ALPHA_R, BETA_R)):
        growth = p[beta] / p[alpha]
        value += GROWTH_PENALTY * growth * growth
        gradient[beta] += 2.0 * GROWTH_PENALTY * growth / p[alpha]
        gradient[alpha] -= 2.0 * GROWTH_PENALTY * growth * growth / p[alpha]
    return float(value)
