"""The oracle of the matching: every slot written out and handed to SciPy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.arrays import Floats, Ints


def match_from_scratch(times: Floats, machine_type: Ints, release: Floats) -> tuple[float, Ints, Ints]:
    """Every slot a column, SciPy's solver; the least total, and per job a machine and a position."""
    jobs, machines = len(times), len(machine_type)
    deepest = max(jobs, 1)
    cost = release + np.arange(1, deepest + 1)[:, None, None] * times[:, machine_type]
    cost = np.where(np.isfinite(cost), cost, 1e15).transpose(1, 0, 2).reshape(jobs, deepest * machines)
    rows, slots = linear_sum_assignment(cost)
    return float(cost[rows, slots].sum()), slots % machines, slots // machines + 1
