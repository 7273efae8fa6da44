"""One column or none per job within one count or several: the best answer of all, one that names its distance, and one without a job."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER

from gantline.core.arrays import Floats, Ints
from gantline.models.solvers.choices_without import best_without, less_without
from gantline.models.solvers.multiple_choice import LARGEST, choose_by_count, separate_counts, solve_choices

Program = tuple[Ints, Floats, Floats, Floats, int]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Few jobs that choose between two or three types, or take some of several, with savings of which many are equal."""
    rng, jobs, types = np.random.default_rng(draw(st.integers(0, 10_000))), draw(st.integers(2, 5)), draw(st.integers(2, 3))
    job = np.sort(rng.integers(0, jobs, draw(st.integers(jobs, 4 * jobs))))
    use = np.zeros((len(job), types))
    use[np.arange(len(job)), rng.integers(0, types, len(job))] = rng.integers(1, 6, len(job))
    use += rng.integers(0, 2, use.shape) * draw(st.booleans())
    return job, use, rng.choice([0.25, 0.5, 0.75, 1.0], len(job)), rng.integers(2, 8, types).astype(np.float64), jobs


def best_of_all(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int) -> float:
    best = 0.0
    for each in product(*([-1, *np.flatnonzero(job == one).tolist()] for one in range(jobs))):
        chosen = [k for k in each if k >= 0]
        if np.all(use[chosen].sum(axis=0) <= free):
            best = max(best, float(saving[chosen].sum()))
    return best


@given(programs())
def test_no_other_answer_saves_more_while_no_state_is_left_out(program: Program) -> None:
    found = solve_choices(*program, most_states=4096)
    assert found.gap == 0.0
    assert program[2][found.columns].sum() == pytest.approx(best_of_all(*program), abs=1e-9)


@given(programs(), st.sampled_from([1, 2, 5]))
def test_with_few_states_the_best_answer_lies_within_the_gap(program: Program, states: int) -> None:
    job, use, saving, free, _ = program
    found = solve_choices(*program, most_states=states)
    assert len(set(job[found.columns].tolist())) == len(found.columns)
    assert np.all(use[found.columns].sum(axis=0) <= free)
    saved, best = saving[found.columns].sum(), best_of_all(*program)
    assert saved <= best + 1e-9 <= saved + found.gap + 2e-7


def test_equal_answers_of_a_crowd_are_few_states() -> None:
    """Sixty jobs that save the same on either of two types: more answers than can be counted, and 2,048 states tell that none is better."""
    job = np.repeat(np.arange(60), 4)
    use = np.tile([[2.0, 0.0], [4.0, 0.0], [0.0, 2.0], [0.0, 4.0]], (60, 1))
    saving = np.tile([0.5, 1.0, 0.5, 1.0], 60)
    found = solve_choices(job, use, saving, np.array([61.0, 71.0]), 60, most_states=2048)
    assert found.gap == 0.0
    assert saving[found.columns].sum() == 0.25 * (60 + 70)  # a quarter for every device, but one of each type is left over


@pytest.mark.parametrize("few", [1, 4000], ids=["branch and bound", "states"])
@given(program=programs())
@FEWER
def test_without_a_number_of_states_the_answer_is_always_the_best(few: int, program: Program) -> None:
    """States where few matter, branch and bound where a state would be left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gantline.models.solvers.multiple_choice._FEW", few)
        found = solve_choices(*program)
    assert found.gap == 0.0
    assert program[2][found.columns].sum() == pytest.approx(best_of_all(*program), abs=1e-9)


@given(programs())
def test_states_are_told_apart_where_their_keys_cannot(program: Program) -> None:
    """Three resources that no column uses, and of which there is so much that the keys of all states are the same number."""
    job, use, saving, free, jobs = program
    huge = np.array([3, 715827883, 2147483647]) - 1.0  # whose product is the number by which keys are taken
    found = solve_choices(job, np.hstack([use, np.zeros((len(job), 3))]), saving, np.append(free, huge), jobs, most_states=4096)
    assert found.gap == 0.0
    assert saving[found.columns].sum() == pytest.approx(best_of_all(*program), abs=1e-9)


# --- within one count -------------------------------------------------------------------------------------------------------
def some_columns(seed: int, jobs: int) -> tuple[Ints, Ints, Floats]:
    draw = np.random.default_rng(seed)
    job = np.sort(draw.integers(0, jobs, int(draw.integers(1, 4 * jobs))))
    return job, draw.integers(1, 6, len(job)), draw.uniform(0.01, 1.0, len(job))


@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 4), capacity=st.integers(0, 14))
def test_no_other_answer_saves_more(seed: int, jobs: int, capacity: int) -> None:
    job, count, saving = some_columns(seed, jobs)
    found = choose_by_count(job, count, saving, capacity)
    assert len(set(job[found].tolist())) == len(found)
    assert count[found].sum() <= capacity
    assert saving[found].sum() == pytest.approx(best_of_all(job, count[:, None], saving, np.array([capacity]), jobs), abs=1e-12)


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


# --- without one of the jobs ------------------------------------------------------------------------------------------------
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
