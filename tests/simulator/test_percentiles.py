"""Percentiles of the summary are NumPy's, to the last bit."""

from __future__ import annotations

import math

import numpy as np

from gantline.simulator.percentiles import percentiles

PERCENTS = (0, 5, 50, 95, 99, 100)


def test_they_are_those_of_numpy() -> None:
    draw = np.random.default_rng(7)
    for count in (1, 2, 3, 4, 20, 21, 100, 101, 1000):
        for values in (draw.exponential(1e4, count), draw.integers(0, 5, count).astype(float), draw.normal(size=count) * 1e-9):
            assert percentiles(values, PERCENTS) == (np.median(values), np.percentile(values, PERCENTS).tolist())


def test_one_that_is_no_number_makes_none_of_them_a_number() -> None:
    middle, (high,) = percentiles(np.array([1.0, math.nan, 2.0]), (95,))
    assert math.isnan(middle)
    assert math.isnan(high)
