"""Batches, accumulation and efficiency."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.models.goodput.batch import BatchLimits, best_batch, gain, goodput_curve, split_batch
from gantline.models.goodput.speed_model import SpeedModel
from gantline.train.rates import RULES, BatchState

MODEL = SpeedModel(np.array([0.05, 0.004, 0.3, 0.01, 0.1, 0.004, 1.6]))
LIMITS = BatchLimits(base=128, most=4096, local_least=32, local_most=1024)


def plain_best(square: float, variance: float, nodes: int, replicas: int, limits: BatchLimits) -> tuple[float, int, int]:
    """All fifty candidates, one after the other."""
    low = max(limits.base, limits.local_least * replicas)
    best = (0.0, 0, 0)
    for i in range(50):
        wanted = low * (limits.most / low) ** (i / 49) / replicas
        steps = math.ceil(wanted / limits.local_most - 1e-8) - 1
        if replicas == 1 and wanted > limits.base:
            steps = max(steps, 1)
        local = math.ceil(wanted / (steps + 1) - 1e-8)
        if not limits.local_least <= local <= limits.local_most:
            continue
        total = replicas * local * (steps + 1)
        seconds = float(MODEL.step_time(nodes, replicas, local, steps))
        value = limits.base * gain(square, variance, total / limits.base) / seconds
        if value > best[0] * (1 + 1e-12):
            best = (value, local, steps)
    return best


@given(st.floats(0.0, 10.0), st.floats(1e-3, 1e3), st.integers(1, 64), st.booleans())
def test_the_best_batch_is_the_best_of_all_candidates(square: float, variance: float, replicas: int, spread: bool) -> None:
    nodes = 2 if spread and replicas > 1 else 1
    found = best_batch(MODEL.parameters, square, variance, nodes, replicas, LIMITS)
    assert found.goodput == pytest.approx(plain_best(square, variance, nodes, replicas, LIMITS)[0], rel=1e-9)


def test_noise_makes_large_batches_worth_their_while() -> None:
    quiet, loud = (best_batch(MODEL.parameters, 1.0, variance, 4, 16, LIMITS) for variance in (0.01, 1e4))
    assert quiet.local < loud.local


def test_a_curve_is_its_points() -> None:
    counts = np.array([2, 3, 8, 40])
    out = np.zeros(len(counts) + 3)
    goodput_curve(MODEL.parameters, 0.1, 5.0, 2, counts, LIMITS.row(), out)
    assert out[:4].tolist() == [best_batch(MODEL.parameters, 0.1, 5.0, 2, int(k), LIMITS).goodput for k in counts]


@pytest.mark.parametrize(
    ("total", "replicas", "expected"),
    [
        (2048, 6, (342, 0)),  # 2048 / 6, rounded up
        (4096, 1, (1024, 3)),
        (128, 1, (128, 0)),
        (200, 1, (100, 1)),  # alone above the first batch: one accumulation step, to see gradient noise
        (4096, 3, (682, 1)),  # two times 683 on three devices would be 4,098
    ],
)
def test_a_given_batch_is_split(total: float, replicas: int, expected: tuple[int, int]) -> None:
    assert split_batch(total, replicas, LIMITS) == expected


@given(st.floats(128, 4096), st.integers(1, 64))
def test_a_split_batch_never_passes_the_largest(total: float, replicas: int) -> None:
    local, steps = split_batch(total, replicas, LIMITS)
    assert replicas * local * (steps + 1) <= LIMITS.most
    assert local <= LIMITS.local_most


def test_without_any_valid_batch_there_is_no_goodput() -> None:
    narrow = BatchLimits(base=100, most=100, local_least=30, local_most=32)
    assert best_batch(MODEL.parameters, 0.0, 1.0, 1, 2, narrow).goodput == 0.0  # 50 is too much, and half of it too little


def test_limits_that_allow_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="batches from 128 to 64 are none"):
        BatchLimits(128, 64, 1, 2)
    with pytest.raises(UsageError, match="local batches from 8 to 4"):
        BatchLimits(128, 256, 8, 4)


def test_efficiency_by_the_noise_scale() -> None:
    pgns = 128.0 * 6.0 / 2.0
    assert gain(2.0, 6.0, 4.0) / 4.0 == pytest.approx((pgns + 128.0) / (pgns + 512.0))


def test_learning_rates_follow_the_batch_by_rule() -> None:
    state = BatchState(scale=16.0, gain=9.0, progress=40.0, warmup=10.0)
    factors = {rule: RULES[rule](state) for rule in ("adascale", "adamscale", "linear", "sqrt", "legw")}
    assert factors == {"adascale": 9.0, "adamscale": 3.0, "linear": 16.0, "sqrt": 4.0, "legw": 1.0}


def test_gain_without_information_is_one_and_without_noise_too() -> None:
    assert gain(0.0, 0.0, 8.0) == 1.0
    assert gain(float("nan"), 1.0, 8.0) == 1.0
    assert gain(-2.0, 1.0, 8.0) == 1.0
    assert gain(1.0, 0.0, 8.0) == 1.0
    assert gain(0.0, 1.0, 8.0) == 8.0
