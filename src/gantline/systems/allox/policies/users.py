"""Fairness between users: whose jobs are let into the matching (AlloX, EuroSys 2020, section 4.3).

A user's score is the progress its running jobs make, in shares of the cluster: each counts its dominant share on its
fastest configuration, and on a slower one as much less as it is slower there. Only the ``ceil(alpha x active)`` users
with the lowest score per weight compete: alpha towards 0 is max-min fairness, alpha = 1 least mean completion time.
"""

from __future__ import annotations

from math import ceil, inf

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import UsageError
from gantline.core.jit import compiled_from_zero as compiled


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
