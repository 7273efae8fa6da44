"""Intervals over seeds: they cover what they say, repeat, know when they know nothing, and promise no level that was not measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gantline.core.errors import UsageError
from gantline.lab.experiment.intervals import Interval, change_interval, fewest_samples, mean_interval


def test_the_middle_is_students_interval_where_nothing_is_skewed() -> None:
    values = stats.norm.ppf((np.arange(30) + 0.5) / 30) + 10.0
    found = mean_interval(values)
    low, high = stats.t.interval(0.95, 29, loc=values.mean(), scale=stats.sem(values))
    assert found.low <= low
    assert found.high >= high
    assert found.high - found.low < 1.1 * (high - low)
    assert Interval(1.0, 0.0, 2.0, 0.95, 30, error=0.5).p == pytest.approx(2 * stats.t.sf(2.0, 29))


def coverage(size: int, confidence: float, rounds: int = 400) -> float:
    """How often the interval of a paired change holds the truth: seeds differ heavily, the second policy takes 0.7 of the time or so."""
    generator, hits = np.random.default_rng(20), 0
    for _ in range(rounds):
        baseline = generator.lognormal(3.0, 0.8, size)
        found = change_interval(baseline, 0.7 * baseline * generator.lognormal(-0.02, 0.2, size), confidence)
        hits += found.low <= -0.3 <= found.high
    return hits / rounds


@pytest.mark.parametrize(("size", "confidence", "least"), [(3, 0.95, 0.9), (5, 0.95, 0.92), (20, 0.95, 0.92), (10, 0.99, 0.965)])
def test_intervals_of_a_paired_change_cover_what_they_say(size: int, confidence: float, least: float) -> None:
    assert coverage(size, confidence) >= least


def test_a_long_tail_is_followed_on_its_side() -> None:
    values = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0])
    found = mean_interval(values)
    assert found.high - found.value > 2 * (found.value - found.low)


def test_pairing_makes_the_interval_narrow() -> None:
    generator = np.random.default_rng(1)
    baseline = generator.lognormal(3.0, 0.8, 20)
    better = 0.8 * baseline * (1 + 0.02 * generator.normal(size=20))
    paired, shuffled = change_interval(baseline, better), change_interval(baseline, generator.permutation(better))
    assert paired.value == pytest.approx(shuffled.value)
    assert paired.high - paired.low < 0.1 * (shuffled.high - shuffled.low)
    assert paired.p < 1e-6 < shuffled.p


def test_the_same_seeds_give_the_same_bounds() -> None:
    values = np.random.default_rng(2).exponential(1.0, 40)
    assert mean_interval(values) == mean_interval(values)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_than_three_seeds_give_a_value_without_bounds(size: int) -> None:
    found = change_interval(np.arange(1.0, 1.0 + size), np.arange(2.0, 2.0 + size))
    assert not found.known
    assert math.isnan(found.p)
    assert math.isnan(found.value) == (size == 0)


def test_a_level_that_few_seeds_cannot_reach_is_not_printed() -> None:
    old, new = np.arange(1.0, 6.0), np.arange(2.0, 7.0)
    assert change_interval(old, new, 0.95).known
    assert not change_interval(old, new, 0.99).known
    assert fewest_samples(0.99) == 10
    for level, message in ((1.0, "not between 0 and 1"), (0.999, "99.9 % have not been measured")):
        with pytest.raises(UsageError, match=message):
            mean_interval(old, level)


def test_equal_columns_do_not_differ_and_nothing_falls_by_more_than_all() -> None:
    zeros = change_interval(np.zeros(10), np.zeros(10))
    assert (zeros.value, zeros.low, zeros.high, zeros.p) == (0.0, 0.0, 0.0, 1.0)
    always = change_interval(np.ones(4), np.full(4, 0.5))
    assert (always.value, always.p) == (-0.5, 0.0)
    assert change_interval(np.array([9.0, 1.0, 1.0]), np.array([0.1, 1.0, 0.1])).low >= -1.0
    assert change_interval(np.zeros(3), np.ones(3)).value == math.inf
