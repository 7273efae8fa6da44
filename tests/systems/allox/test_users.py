"""Who is let into the matching: progress scores, alpha and weights."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.systems.allox.policies.users import check_alpha, let_in, progress_gains, user_scores

CAPACITY = np.array([160.0, 4.0, 768.0])
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


def test_a_slow_device_is_less_progress() -> None:
    time = np.array([[800.0, 200.0], [100.0, 400.0], [50.0, 50.0], [np.inf, 30.0]])
    need = np.tile(np.array([[20.0, 0.0, 8.0], [0.0, 1.0, 2.0]]), (4, 1, 1))
    gain = progress_gains(time, need, CAPACITY)
    gpu, node = 0.25, 0.125
    assert gain.tolist() == [[gpu / 4, gpu], [node, node / 4], [gpu, gpu], [0.0, gpu]]


def test_scores_add_up_what_runs() -> None:
    assert user_scores(np.array([0, 2, 0]), np.array([0.25, 0.125, 0.25]), 4).tolist() == [0.5, 0.0, 0.125, 0.0]


@pytest.mark.parametrize("alpha", [0.0, -0.5, 1.01, float("nan")])
def test_alpha_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha is"):
        check_alpha(alpha)
