"""Bootstrap intervals say 95 % and mean it, are the same for the same seed, and know when they know nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.experiment.bootstrap import bootstrap, expanded_tail, mean_of, relative_change


def coverage(draw, truth: float, statistic, size: int, rounds: int = 1500) -> float:  # type: ignore[no-untyped-def]
    """How often the interval of fresh samples holds the truth."""
    generator = np.random.default_rng(20)
    hits = 0
    for number in range(rounds):
        interval = bootstrap(draw(generator, size), statistic, resamples=1000, seed=number)
        hits += interval.low <= truth <= interval.high
    return hits / rounds


@pytest.mark.parametrize(("size", "least"), [(5, 0.905), (8, 0.925), (30, 0.93)])
def test_intervals_of_a_mean_cover_at_the_nominal_rate(size: int, least: float) -> None:
    found = coverage(lambda generator, n: generator.normal(10.0, 2.0, (1, n)), 10.0, mean_of, size)
    assert least <= found <= 0.97


@pytest.mark.parametrize("size", [6, 12])
def test_intervals_of_a_paired_improvement_cover_at_the_nominal_rate(size: int) -> None:
    def two_policies(generator: np.random.Generator, n: int) -> np.ndarray:
        """Seeds differ much, and the second policy takes 0.7 of the first one's time, give or take a little."""
        baseline = generator.lognormal(3.0, 0.4, n)
        return np.stack([baseline, 0.7 * baseline * (1 + 0.1 * generator.normal(size=n))])

    assert 0.91 <= coverage(two_policies, -0.3, relative_change, size) <= 0.985


def test_pairing_makes_the_interval_narrow() -> None:
    generator = np.random.default_rng(1)
    baseline = generator.lognormal(3.0, 0.8, 20)
    better = 0.8 * baseline * (1 + 0.02 * generator.normal(size=20))
    paired = bootstrap(np.stack([baseline, better]), relative_change)
    shuffled = bootstrap(np.stack([baseline, generator.permutation(better)]), relative_change)
    assert paired.value == pytest.approx(shuffled.value)
    assert paired.high - paired.low < 0.1 * (shuffled.high - shuffled.low)


def test_the_same_seed_gives_the_same_bounds_and_another_one_hardly_others() -> None:
    values = np.random.default_rng(2).exponential(1.0, (1, 40))
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)
    one, other = bootstrap(values, seed=3), bootstrap(values, seed=4)
    assert one != other
    assert one.low == pytest.approx(other.low, abs=0.05)


def test_few_samples_give_a_value_without_bounds() -> None:
    interval = bootstrap(np.array([[1.0, 2.0, 3.0, 6.0]]))
    assert interval.value == 3.0
    assert not interval.known
    assert math.isnan(bootstrap(np.zeros((1, 0))).value)


def test_equal_columns_do_not_differ() -> None:
    zeros = bootstrap(np.zeros((2, 10)), relative_change)
    assert (zeros.value, zeros.low, zeros.high) == (0.0, 0.0, 0.0)


def test_small_samples_look_further_out() -> None:
    assert expanded_tail(0.95, 10) < expanded_tail(0.95, 100) < expanded_tail(0.95, 10_000) < 0.0251
    assert expanded_tail(0.95, 10_000) == pytest.approx(0.025, rel=0.01)


def test_many_jobs_fit_in_memory_by_blocks() -> None:
    values = np.random.default_rng(5).exponential(100.0, (2, 30_000))
    interval = bootstrap(values, relative_change, resamples=300)
    assert interval.low < 0.0 < interval.high


def test_a_confidence_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match="confidence 1 is not between 0 and 1"):
        bootstrap(np.ones((1, 9)), confidence=1)
