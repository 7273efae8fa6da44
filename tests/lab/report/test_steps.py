"""Step functions: integrals and means agree with adding up by hand."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.lab.report.metrics import busy_share
from gantline.lab.report.metrics.columns import bin_means, time_mean
from gantline.simulator.areas import integral
from gantline.simulator.run_columns import SeriesColumns

STAIRS = pl.DataFrame({"time": [0.0, 10.0, 30.0], "level": [1, 3, 0], "room": [4, 4, 4]})


def test_each_row_holds_until_the_next():
    assert time_mean(STAIRS, "level", 0, 30) == pytest.approx((10 * 1 + 20 * 3) / 30)
    assert time_mean(STAIRS, "level", 5, 15) == pytest.approx((5 * 1 + 5 * 3) / 10)


def test_zero_before_the_first_row_and_last_value_for_ever():
    assert time_mean(STAIRS.with_columns(level=pl.Series([1, 3, 2])), "level", 30, 1000) == 2.0
    assert time_mean(STAIRS, "level", -10, 0) == 0.0


def test_an_empty_stretch_has_no_mean():
    assert math.isnan(time_mean(STAIRS, "level", 5, 5))


def test_use_weighs_by_time_and_by_what_was_up():
    level, room, none = (np.array(values, dtype=float) for values in ([1, 3, 0], [4, 4, 5], [0, 0, 1]))
    steps = SeriesColumns(STAIRS["time"].to_numpy(), none, none, level, none, room, none)
    assert busy_share(steps, 0, 30) == pytest.approx(70 / 120)
    assert math.isnan(busy_share(SeriesColumns(steps.time, none, none, level, room, room, none), 0, 30))


@given(st.integers(1, 40))
def test_slices_keep_the_area(bins):
    sliced = bin_means(STAIRS, ["level"], 0, 40, bins)
    assert sliced["level"].sum() * 40 / bins == pytest.approx(70.0)


@given(
    st.lists(st.tuples(st.floats(0.01, 50), st.floats(0, 9)), min_size=1, max_size=20),
    st.floats(0, 500),
)
def test_integral_equals_a_plain_sum(rows, until):
    times = np.cumsum([gap for gap, _ in rows])
    levels = np.array([level for _, level in rows])
    ends = np.append(times[1:], math.inf)
    by_hand = sum(level * max(0.0, min(end, until) - start) for start, end, level in zip(times, ends, levels))
    assert integral(times, levels, np.array([until]))[0] == pytest.approx(by_hand, abs=1e-6)
