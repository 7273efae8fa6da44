"""Tracked windows and warm-up."""

import pytest
from tests.lab.report.example_runs import job_rows

from gantline.core.errors import UsageError
from gantline.lab.report.metrics import Window

JOBS = job_rows(*[{"arrival": arrival} for arrival in (30.0, 0.0, 10.0, 20.0)])


def tracked(window):
    return window.select(JOBS)["arrival"].to_list()


def test_ranges_count_in_arrival_order():
    assert tracked(Window()) == [0.0, 10.0, 20.0, 30.0]
    assert tracked(Window(1, 3)) == [10.0, 20.0]
    assert tracked(Window(2)) == [20.0, 30.0]


def test_warmup_counts_from_the_first_arrival():
    assert tracked(Window(warmup=10)) == [10.0, 20.0, 30.0]
    assert tracked(Window(2, 4, warmup=25)) == [30.0]


def test_windows_that_hold_nothing_are_refused_with_a_reason():
    with pytest.raises(UsageError, match="jobs 3:3 is empty"):
        Window(3, 3)
    with pytest.raises(UsageError, match="holds none of the 4 jobs"):
        Window(9).select(JOBS)
    with pytest.raises(UsageError, match="not negative"):
        Window(warmup=-1)
