"""How badly a speed model fits its rows, and in which direction it fits better: Pollux' loss with its analytic gradient.

The root mean square error of log times, without and with averaging, plus penalties that keep overlap and the growth of
averaging time small where the rows do not ask for them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel
from gantline.models.goodput.observations import BATCH, LOG_COMPUTE, LOG_STEP, NODES, REPLICAS
from gantline.models.goodput.speed_model import (
    ALPHA_C,
    ALPHA_N,
    ALPHA_R,
    BETA_C,
    BETA_N,
    BETA_R,
    GAMMA,
    TINY,
    gradient_time,
    sync_time,
)

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


def loss_of(p: Floats, rows: Floats) -> tuple[float, Floats]:
    """The loss and its gradient."""
    gradient = np.zeros(7)
    value = loss_and_gradient(p, rows, gradient, np.zeros((4, 7)))
    return float(value), gradient
