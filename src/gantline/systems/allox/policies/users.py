"""Fairness between users: whose jobs are let into the matching (AlloX, EuroSys 2020, section 4.3).

A user's score is the progress its running jobs make, in shares of the cluster: each counts its dominant share on its
fastest configuration, and on a slower one as much less as it is slower there. Only the ``ceil(alpha x active)`` users
with the lowest score per weight compete: alpha towards 0 is max-min fairness, alpha = 1 least mean completion time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import compiled_from_zero as compiled
from gantline.systems.allox.policies.shares import Worth, dominant_share


def check_alpha(alpha: float) -> float:
    """Alpha as given, if it lies in (0, 1]."""
    if not 0.0 < alpha <= 1.0:
        raise UsageError(f"alpha is {alpha:g}", where="alpha", fix="give a number above 0 (most fair) up to 1 (shortest mean time)")
    return alpha


def read_weights(texts: tuple[str, ...]) -> dict[str, float]:
    """How much users count, from ``alice=2``."""
    weights: dict[str, float] = {}
    for text in texts:
        name, sign, number = text.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            weights[name] = -1.0
        if not sign or not name or not 0.0 < weights[name] < inf:
            raise UsageError(f"'{text}' is not a weight", where="weights", fix="write user=NUMBER with a number above 0, such as alice=2")
    return weights


def weights_of(users: Sequence[str], weights: Mapping[str, float]) -> Floats:
    """What was said of each of these users; zero: nothing."""
    said = np.zeros(len(users))
    for name, value in weights.items():
        said[[user == name for user in users]] = value
    return said


def progress_gains(time: Floats, need: Floats, capacity: Floats) -> Floats:
    """What running job j on type t adds to its user's score: ``time[j, t]``, ``need[j, t, resource]``.

    Types that a job cannot use (infinite time) add nothing. Of equally fast types the last one counts as the fastest,
    which for (CPU, GPU) is the GPU.
    """
    jobs, types = time.shape
    fastest = types - 1 - np.argmin(time[:, ::-1], axis=1)
    rates = Worth.separate(len(capacity))
    share = np.array([dominant_share(need[j, fastest[j]], capacity, rates.group, rates.value) for j in range(jobs)], dtype=float)
    best = time[np.arange(jobs), fastest]
    slowdown = np.where(np.isfinite(time), best[:, None] / time, 0.0)
    return share[:, None] * slowdown


@compiled
def let_in(score: Floats, weight: Floats, active: Bools, alpha: float) -> Bools:
    """The active users with the lowest score per weight, ``ceil(alpha x active)`` of them; draws go by number."""
    count = 0
    for u in range(active.size):
        count += active[u]
    seats = min(count, ceil(alpha * count - 1e-12))
    chosen = np.zeros(active.size, np.bool_)
    for _ in range(seats):
        lowest = -1
        for u in range(active.size):
            if active[u] and not chosen[u] and (lowest < 0 or score[u] / weight[u] < score[lowest] / weight[lowest]):
                lowest = u
        chosen[lowest] = True
    return chosen


def user_scores(owner: Ints, gain: Floats, users: int) -> Floats:
    """Every user's score from its running jobs: their owners, and what each adds where it runs."""
    return np.bincount(owner, weights=gain, minlength=users).astype(np.float64)
