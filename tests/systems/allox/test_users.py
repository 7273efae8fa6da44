"""Who is let into the matching: progress scores, alpha and weights."""

from __future__ import annotations

import numpy as np

from gantline.systems.allox.policies.decision import let_in

EVERYONE = np.ones(4, dtype=bool)


def chosen(score: list[float], alpha: float, weight: list[float] | None = None, active: np.ndarray = EVERYONE) -> list[int]:
    weights = np.ones(len(score)) if weight is None else np.array(weight)
    return np.flatnonzero(let_in(np.array(score), weights, active, alpha)).tolist()


def test_alpha_is_a_part_of_the_users_rounded_up() -> None:
    score = [0.3, 0.1, 0.4, 0.2]
    assert chosen(score, 0.1) == [1]
    assert chosen(score, 0.5) == [1, 3]
    assert chosen(score, 0.51) == [0, 1, 3]
    assert chosen(score, 1.0) == [0, 1, 2, 3]
    assert chosen(score, 1.6) == [0, 1, 2, 3]


def test_only_active_users_count() -> None:
    assert chosen([0.0, 0.5, 0.4, 0.0], 0.5, active=np.array([False, True, True, False])) == [2]


def test_equal_scores_go_by_number_and_weights_divide() -> None:
    assert chosen([0.2] * 4, 0.5) == [0, 1]
    assert chosen([0.2] * 4, 0.5, weight=[1, 1, 2, 2]) == [2, 3]
