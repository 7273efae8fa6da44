"""Many comparisons in one table: Holm's p-values, and how many seeds a change would need."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gantline.lab.experiment.intervals import Interval, holm, seeds_needed
from gantline.lab.experiment.verdict import Difference, judged_together


def test_holm_by_hand() -> None:
    """The smallest of three times three, the next times two, the last once, and none below the one before it."""
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, math.nan, 0.9])[0] == 1.0
    assert math.isnan(holm([0.5, math.nan, 0.9])[1])
    assert holm([]) == []


def test_the_seeds_that_are_said_to_be_needed_tell_the_change_four_times_in_five() -> None:
    """By simulation: a change of 0.1 that varies by 0.15 from seed to seed, in a table of five comparisons."""
    count = seeds_needed(0.1, 0.15, 0.95, 5)
    drawn = np.random.default_rng(0).normal(0.1, 0.15, (4000, count))
    told = stats.ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05 / 5
    assert 0.76 < told.mean() < 0.84


def test_more_comparisons_and_a_smaller_change_need_more_seeds() -> None:
    few, many, small = seeds_needed(0.2, 0.1, 0.95, 1), seeds_needed(0.2, 0.1, 0.95, 15), seeds_needed(0.05, 0.1, 0.95, 1)
    assert few < many < small
    assert seeds_needed(0.001, 1.0, 0.95, 1) is None
    assert seeds_needed(0.0, 1.0, 0.95, 1) is None
    assert seeds_needed(0.5, 0.01, 0.99, 1) == 10


def test_tables_are_judged_together() -> None:
    def one(error: float) -> Difference:
        return Difference("b", "a", "jct_mean", 0.9, 1.0, Interval(-0.1, -0.2, -0.01, 0.95, 10, error), "seeds")

    (alone,), (crowded, *_) = judged_together([[one(0.04)]])[0], judged_together([[one(0.04), *[one(1.0)] * 9]])[0]
    assert alone.p == pytest.approx(2 * stats.t.sf(2.5, 9))
    assert crowded.p == pytest.approx(10 * alone.p)
    assert (alone.sign, crowded.sign) == (1, 0)
    assert crowded.comparisons == 10
