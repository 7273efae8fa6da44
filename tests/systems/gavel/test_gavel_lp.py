"""The layer on HiGHS: statuses are told apart, ties are settled by the second objective, answers have no history."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gantline.models.solvers.linear_programs import LinearProgram, solve


def program(gain: list[float], rows: list[list[float]], upper: list[float], **changes: object) -> LinearProgram:
    n = len(gain)
    given: dict[str, object] = {
        "gain": np.array(gain),
        "matrix": sparse.csc_array(np.array(rows, dtype=float)),
        "lower": np.full(len(upper), -np.inf),
        "upper": np.array(upper, dtype=float),
        "low": np.zeros(n),
        "high": np.full(n, np.inf),
    }
    return LinearProgram(**(given | changes))  # type: ignore[arg-type]


SQUARE = program([1.0, 1.0], [[1, 1]], [1.0])  # every point with x + y = 1 is optimal


def test_simplex_ends_in_a_vertex_and_the_interior_answer_lies_in_the_middle() -> None:
    assert sorted(solve(SQUARE, "simplex").x.round(6)) == [0.0, 1.0]
    assert solve(SQUARE, "interior").x == pytest.approx([0.5, 0.5], abs=1e-4)


@pytest.mark.parametrize("favourite", [0, 1])
def test_the_second_objective_settles_the_tie(favourite: int) -> None:
    second = np.eye(2)[favourite]
    found = solve(SQUARE, "simplex", second=second)
    assert found.x == pytest.approx(second, abs=1e-6)
    assert found.objective == pytest.approx(1.0, abs=1e-6)


def test_equal_programs_have_equal_answers_whatever_was_solved_before() -> None:
    once = solve(SQUARE).x
    solve(program([3.0, 1.0], [[1, 2], [2, 1]], [4.0, 5.0]))
    assert np.array_equal(solve(SQUARE).x, once)


def test_infeasible_and_unbounded_programs_are_told_apart() -> None:
    assert solve(program([1.0], [[1.0]], [-1.0])).status == "infeasible"
    assert solve(program([1.0], [[-1.0]], [1.0])).status == "unbounded"


def test_a_spent_budget_is_a_status_of_its_own() -> None:
    rng = np.random.default_rng(3)
    many = program(list(rng.random(60)), rng.random((40, 60)).tolist(), [1.0] * 40)
    assert solve(many, budget=1).status == "budget"
    assert solve(many).status == "optimal"


def test_whole_columns_stay_whole() -> None:
    knapsack = program([5.0, 4.0, 3.0], [[2, 3, 1]], [4.0], high=np.ones(3), whole=np.ones(3))
    found = solve(knapsack, "mip")
    assert found.objective == pytest.approx(8.0)
    assert found.x.round(6).tolist() == [1.0, 0.0, 1.0]
