"""How much of their time limits jobs use, from those that have ended and those that still run.

A running job says that its share is larger than what it has used so far. Without it only short jobs would count where accounting is young:
the long ones have not ended. The product-limit estimate takes both (Kaplan and Meier, "Nonparametric Estimation from Incomplete
Observations", JASA 1958); what it leaves beyond the last end is spread evenly up to the limit, where Slurm ends every job.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Floats
from gantline.simulator.uncertainty import FEWEST

_PLACES = 256  # shares that stand for an estimate, at least


def shares_of_limits(ended: Sequence[float], running: Sequence[float]) -> tuple[float, ...]:
    """Shares that are equally likely, in rising order: as seen, and as of a few jobs more of which any share is as likely."""
    imagined = (np.arange(FEWEST) + 1) / FEWEST  # few ended jobs do not show how long jobs can be
    known: Floats = np.sort(np.append(np.minimum(np.asarray(ended, dtype=np.float64), 1.0), imagined))
    open_ones: Floats = np.sort(np.minimum(np.asarray(running, dtype=np.float64), 1.0))
    if not len(open_ones):
        return tuple(np.round(known, 6).tolist())
    at, ends = np.unique(known, return_counts=True)
    at_risk = len(known) - np.searchsorted(known, at) + len(open_ones) - np.searchsorted(open_ones, at)
    passed: Floats = np.cumprod(1.0 - ends / at_risk, dtype=np.float64)  # the share of jobs that use more than `at`
    return tuple(np.round(_evenly(at, passed, max(_PLACES, len(known))), 6).tolist())


def _evenly(at: Floats, passed: Floats, count: int) -> Floats:
    """The estimate as so many shares of equal weight."""
    left = 1.0 - (np.arange(count) + 0.5) / count  # by how many jobs each is passed
    place = np.searchsorted(-passed, -left)
    beyond = place == len(at)
    found = at[np.minimum(place, len(at) - 1)]
    rest = float(passed[-1])
    found[beyond] = 1.0 - (1.0 - at[-1]) * left[beyond] / rest if rest > 0 else at[-1]
    return found
