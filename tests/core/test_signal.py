"""A signal holds a value per step and repeats its last day behind its end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.core.facts import DAY, Signal


def test_a_value_holds_for_its_step_and_sums_over_time() -> None:
    signal = Signal((100.0, 200.0, 50.0), step=10.0)

    assert signal.at(np.array([0.0, 9.9, 10.0, 25.0])).tolist() == [100.0, 100.0, 200.0, 50.0]
    assert signal.integral(5.0, 25.0) == pytest.approx(5 * 100 + 10 * 200 + 5 * 50)
    assert signal.next_step(10.0) == 20.0


def test_behind_its_end_the_last_day_is_repeated() -> None:
    hourly = Signal(tuple(float(hour) for hour in range(48)))

    assert hourly.at(np.array([hourly.end + 3600.0]))[0] == 25.0
    assert hourly.integral(hourly.end, hourly.end + 2 * DAY) == pytest.approx(2 * hourly.integral(DAY, 2 * DAY))
    assert hourly.covers(48 * 3600.0)
    assert not hourly.covers(48 * 3600.0 + 1)


@given(
    st.lists(st.floats(0, 1000), min_size=1, max_size=60),
    st.sampled_from([300.0, 3600.0, 7200.0]),
    st.floats(0, 5 * DAY),
    st.floats(0, DAY),
)
def test_the_sum_is_that_of_small_pieces(values: list[float], step: float, begin: float, length: float) -> None:
    signal = Signal(tuple(values), step)
    edges = np.unique(np.concatenate(([begin, begin + length], np.arange(np.ceil(begin / step), (begin + length) / step) * step)))
    edges = edges[(edges >= begin) & (edges <= begin + length)]
    plainly = sum(float(signal.at(np.array([(a + b) / 2]))[0]) * (b - a) for a, b in pairwise(edges))

    assert signal.integral(begin, begin + length) == pytest.approx(plainly, rel=1e-6, abs=1e-3)


def test_a_run_begins_at_a_whole_step_of_the_series() -> None:
    signal = Signal((1.0, 2.0, 3.0))

    assert signal.starting(3600.0).values == (2.0, 3.0)
    for outside in (1800.0, 3 * 3600.0, -3600.0):
        with pytest.raises(UsageError, match="no step"):
            signal.starting(outside)
