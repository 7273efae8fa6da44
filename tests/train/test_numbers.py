"""Batches, rates and noise: the numbers of the goodput models, without their libraries."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.models.goodput.batch import BatchLimits, gain, split_batch
from gantline.train import BatchPlan, NoiseMeter, NoiseScale


@given(base=st.integers(1, 300), growth=st.integers(1, 20), local=st.integers(1, 300), world=st.integers(1, 16), share=st.floats(0, 1))
def test_a_batch_is_split_as_the_goodput_models_split_it(base: int, growth: int, local: int, world: int, share: float) -> None:
    most = base * growth
    total = round(base + share * (most - base))
    assert BatchPlan(base, most, local).split(total, world) == split_batch(total, world, BatchLimits(base, most, 1, local))


def test_the_total_follows_the_allocation_within_limits() -> None:
    fixed = BatchPlan(64)
    assert [fixed.total(world) for world in (1, 3, 8)] == [64, 64, 64]
    assert fixed.total(4, asked=512) == 64  # nobody said that it may grow
    assert BatchPlan(64, most=256).total(4, asked=512) == 256
    assert BatchPlan(64, most=256).total(4, asked=100) == 100
    assert BatchPlan(64, most=256).total(4, asked=10) == 64
    wide = BatchPlan(32, follow="replicas")
    assert [wide.total(world) for world in (1, 3)] == [32, 96]
    assert BatchPlan(32, most=64, follow="replicas").total(3) == 64


@pytest.mark.parametrize("wrong", [{"base": 0}, {"base": 8, "most": 4}, {"base": 8, "local_most": -1}, {"base": 8, "follow": "moon"}])
def test_impossible_batches_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        BatchPlan(**wrong)  # type: ignore[arg-type]


@given(square=st.floats(0, 10), variance=st.floats(0.001, 10), scale=st.floats(1, 100))
def test_gain_is_the_goodput_models_gain(square: float, variance: float, scale: float) -> None:
    meter = NoiseMeter(square, variance, 1.0, False)
    assert meter.gain(scale) == pytest.approx(gain(square, variance, scale), rel=1e-12)


def _vectors(rng: random.Random, truth: list[float], spread: float, count: int) -> list[list[float]]:
    return [[value + rng.gauss(0.0, spread) for value in truth] for _ in range(count)]


def _square(vector: list[float]) -> float:
    return math.fsum(value * value for value in vector)


def _mean(vectors: list[list[float]]) -> list[float]:
    return [math.fsum(column) / len(vectors) for column in zip(*vectors)]


def test_noise_between_parts_finds_gradient_and_variance() -> None:
    """Parts of a quarter of the base batch: a gradient at that size has four times the variance it has at the base batch."""
    rng, truth = random.Random(1), [0.5] * 40  # |g|^2 = 10
    meter = NoiseMeter()
    for _ in range(500):
        parts = _vectors(rng, truth, 1.0, 4)  # trace of covariance of a part: 40; of the mean of four, at the base batch: 10
        meter.add(math.fsum(map(_square, parts)) / 4, _square(_mean(parts)), 4, scale=1.0)
    assert meter.square == pytest.approx(10.0, rel=0.1)
    assert meter.variance == pytest.approx(10.0, rel=0.1)
    assert meter.noise_scale(128) == pytest.approx(128, rel=0.2)
    again = NoiseMeter.of(meter.state())
    assert (again.square, again.variance, again.biased) == (meter.square, meter.variance, False)


def test_noise_between_steps_counts_until_parts_are_seen() -> None:
    rng, truth = random.Random(2), [0.5] * 40
    meter, before = NoiseMeter(), None
    for _ in range(500):
        (now,) = _vectors(rng, truth, 0.5, 1)  # at the base batch: trace 10
        if before is not None:
            meter.add_pair(_square(before), _square(now), _square(_mean([before, now])), scale=1.0)
        before = now
    assert meter.biased
    assert meter.square == pytest.approx(10.0, rel=0.1)
    assert meter.variance == pytest.approx(10.0, rel=0.1)
    meter.add(5.0, 4.0, 2, 1.0)
    assert not meter.biased
    assert meter.square == pytest.approx(3.0)  # what the pairs told is forgotten
    meter.add_pair(100.0, 100.0, 0.0, 1.0)
    assert meter.square == pytest.approx(3.0)


def test_before_anything_is_measured_every_sample_counts_fully() -> None:
    meter = NoiseMeter()
    assert not meter.is_known
    assert meter.gain(8.0) == pytest.approx(8.0)
    with pytest.raises(ValueError, match="add_pair"):
        meter.add(1.0, 1.0, 1, 1.0)


def test_kungfus_noise_scale() -> None:
    """g_s = G + S/b and g_B = G + S/B give back G = 2 and S = 60."""
    scale = NoiseScale()
    assert math.isnan(scale.value)
    for _ in range(3):
        assert scale.add(16, 64, 2 + 60 / 16, 2 + 60 / 64) == pytest.approx(30.0)
    scale.add(16, 64, 2 + 600 / 16, 2 + 600 / 64)
    assert scale.value == pytest.approx((0.9 * 60 + 0.1 * 600) / 2)
    with pytest.raises(ValueError, match="part of the global"):
        scale.add(64, 64, 1.0, 1.0)
