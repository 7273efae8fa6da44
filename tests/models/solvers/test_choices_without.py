"""What a crowded program saves without one of its jobs, against solving the rest of it, and the same as a question with a limit."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.models.solvers.choices_without import best_without, less_without
from gantline.models.solvers.multiple_choice import solve_choices

JOBS, RESOURCES = 7, 3


@pytest.mark.parametrize("seed", range(4))
def test_a_limit_just_below_or_above_what_is_saved_without_a_job_is_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    job = np.repeat(np.arange(JOBS), 4)
    use = rng.integers(0, 4, (len(job), RESOURCES)).astype(np.float64)
    use[:, 0] = np.maximum(use[:, 0], 1.0)
    saving, free = rng.uniform(0.1, 3.0, len(job)), np.full(RESOURCES, 8.0)
    chosen = solve_choices(job, use, saving, free, JOBS).columns
    leaving = job[chosen].tolist()
    most = best_without(job, use, saving, free, JOBS, leaving)
    for one, value in zip(leaving, most):
        rest = np.flatnonzero(job != one)
        assert value == pytest.approx(saving[rest[solve_choices(job[rest], use[rest], saving[rest], free, JOBS).columns]].sum())
    for off in (-2.0, -0.1, -1e-6, 1e-6, 0.1, 2.0):
        limits = [value + off for value in most]
        assert less_without(job, use, saving, free, JOBS, leaving, limits) == [off > 0.0] * len(leaving)
