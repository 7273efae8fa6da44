"""From goodputs to the costs of Sia's program: rows in GPU equivalents, discounted for a restart, to the power p (section 3.4)."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints

_DECIMALS = 2
_HIGHEST = 3000.0


def restart_factor(age: Floats, restarts: Ints, cost: Floats) -> Floats:
    """The share of its age that a job has really run, were it restarted once more; 1 while it is younger than one restart."""
    return np.where(age < cost, 1.0, np.maximum(age - restarts * cost, 0.0) / np.maximum(age + cost, 1e-9))


def normalised(goodput: Floats, unit: Floats) -> Floats:
    """Rows divided by their least goodput, times the GPUs of one replica in that column; what is not above zero stays out (NaN)."""
    valid = np.where((goodput > 0.0) & np.isfinite(goodput), goodput, np.inf)
    jobs = np.arange(len(goodput))
    least = np.argmin(valid, axis=1) if goodput.shape[1] else np.zeros(0, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # rows in which nothing is valid
        worth = valid / valid[jobs, least][:, None] * unit[jobs, least][:, None]
    return np.where(np.isfinite(valid), worth, np.nan)


def costs(worth: Floats, factor: Floats, held: Ints, weight: Floats, p: float) -> Floats:
    """What each column costs (to be minimised); infinite where a job cannot have it.

    The factor is for every column but the one that a job holds, and only for jobs that hold one. For p above 0 the powers are gains;
    for p = 0, where all powers are 1, logarithms take their place, as the power mean becomes the geometric one.
    """
    has = held >= 0
    scale = np.where(has, factor, 1.0)[:, None] * np.ones_like(worth)
    scale[np.flatnonzero(has), held[has]] = 1.0
    discounted = np.where(np.isnan(worth), 1.0, worth * scale)
    with np.errstate(divide="ignore"):
        raised = np.log(discounted) if p == 0.0 else discounted**p
    raised = np.clip(np.round(raised, _DECIMALS), -_HIGHEST, _HIGHEST)
    cost = (raised if p < 0.0 else -raised) * weight[:, None]
    return np.where(np.isnan(worth), np.inf, cost)
