"""One column or none per job within one count of devices: against every answer there is, and against branch and bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.arrays import Floats, Ints
from gantline.models.solvers.multiple_choice import LARGEST, choose_by_count, separate_counts, solve_choices


def some_columns(seed: int, jobs: int) -> tuple[Ints, Ints, Floats]:
    draw = np.random.default_rng(seed)
    job = np.sort(draw.integers(0, jobs, int(draw.integers(1, 4 * jobs))))
    return job, draw.integers(1, 6, len(job)), draw.uniform(0.01, 1.0, len(job))


def best_of_all(job: Ints, count: Ints, saving: Floats, capacity: int) -> float:
    best = 0.0
    for each in product(*([-1, *np.flatnonzero(job == one).tolist()] for one in np.unique(job))):
        chosen = [k for k in each if k >= 0]
        if count[chosen].sum() <= capacity:
            best = max(best, float(saving[chosen].sum()))
    return best


@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 4), capacity=st.integers(0, 14))
def test_no_other_answer_saves_more(seed: int, jobs: int, capacity: int) -> None:
    job, count, saving = some_columns(seed, jobs)
    found = choose_by_count(job, count, saving, capacity)
    assert len(set(job[found].tolist())) == len(found)
    assert count[found].sum() <= capacity
    assert saving[found].sum() == pytest.approx(best_of_all(job, count, saving, capacity), abs=1e-12)


def test_of_answers_that_save_the_same_the_later_job_gets_less() -> None:
    job, count, saving = np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2]), np.array([0.25, 0.5, 0.25, 0.5])
    assert choose_by_count(job, count, saving, 3).tolist() == [1, 2]


def test_two_types_of_which_every_job_wants_one_are_two_programs() -> None:
    """Six devices each: three and three of the first type, four or two of the second."""
    job = np.array([0, 1, 2, 2, 3])
    use = np.array([[3, 0], [3, 0], [0, 4], [0, 2], [0, 4]], dtype=np.float64)
    saving = np.array([0.3, 0.4, 0.9, 0.5, 0.7])
    assert solve_choices(job, use, saving, np.array([5.0, 6.0]), 4).columns.tolist() == [1, 3, 4]


@pytest.mark.parametrize(
    ("use", "free", "jobs", "why"),
    [
        ([[1, 0], [0, 1]], [4, 4], 1, "the job chooses between types"),
        ([[1, 1], [1, 1]], [4, 4], 1, "a column uses both"),
        ([[0.5, 0], [1, 0]], [4, 4], 1, "half a device"),
        ([[1, 0], [2, 0]], [LARGEST, 4], 1, "the table would be too large"),
    ],
)
def test_what_is_no_program_over_one_count_goes_to_branch_and_bound(use: list[list[float]], free: list[int], jobs: int, why: str) -> None:
    of_one = np.zeros(2, dtype=np.int64)
    assert separate_counts(of_one, np.array(use, dtype=np.float64), np.array(free, dtype=np.float64), jobs) is None, why
