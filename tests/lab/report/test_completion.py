"""Completion times: what counts, and how the numbers are taken."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.report.example_runs import example_run, job_rows

from gantline.lab.report.frames import completed, jobs_of_frame
from gantline.lab.report.metrics import bounded_slowdown, cdf, distribution, makespan

times = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


def test_only_finished_work_has_a_completion_time():
    jobs = job_rows(
        {"state": "completed", "jct": 5.0},
        {"state": "failed", "jct": 7.0},
        {"state": "running"},
        {"state": "rejected"},
    )
    assert completed(jobs)["job"].to_list() == ["j0"]


def test_percentiles_interpolate_between_order_statistics():
    spread = distribution(pl.Series([0.0, 10.0, math.nan, None]))
    assert spread["mean"] == 5.0
    assert spread["median"] == 5.0
    assert spread["p90"] == pytest.approx(9.0)
    assert spread["p95"] == pytest.approx(9.5)
    assert spread["p99"] == pytest.approx(9.9)
    assert spread["max"] == 10.0


def test_no_finished_job_gives_nan_not_an_error():
    assert all(math.isnan(value) for value in distribution(pl.Series([], dtype=pl.Float64)).values())
    assert math.isnan(makespan(jobs_of_frame(job_rows({"state": "waiting"}))))


@pytest.mark.parametrize("state", ["running", "waiting", "future"])
def test_a_makespan_is_over_when_everybody_has_ended(state):
    done = {"state": "completed", "arrival": 2.0, "finish": 12.0, "jct": 10.0}
    assert makespan(jobs_of_frame(job_rows(done, {"state": "rejected", "arrival": 3.0}))) == 10.0
    assert math.isnan(makespan(jobs_of_frame(job_rows(done, {"state": state}))))


@given(times)
def test_cdf_rises_to_one_over_distinct_values(values):
    frame = cdf(pl.Series(values))
    assert frame["value"].to_list() == sorted(set(values))
    assert frame["share"].is_sorted()
    assert frame["share"][-1] == pytest.approx(1.0)
    middle = frame.filter(pl.col("share") >= 0.5)["value"][0]
    assert middle == np.quantile(values, 0.5, method="inverted_cdf")


def test_slowdown_is_bounded_for_short_jobs_and_never_below_one():
    jobs = job_rows(
        {"jct": 60.0, "duration": 1.0},  # a second of work counts as ten
        {"jct": 300.0, "duration": 100.0},
        {"jct": 50.0, "duration": 100.0},  # ran with more GPUs than it asked for
    )
    assert bounded_slowdown(jobs).to_list() == [6.0, 3.0, 1.0]


def test_makespan_runs_from_first_arrival_to_last_completion():
    jobs = job_rows(
        {"arrival": 100.0, "finish": 150.0, "jct": 50.0},
        {"arrival": 110.0, "finish": 400.0, "jct": 290.0},
        {"arrival": 90.0, "state": "rejected"},
    )
    assert makespan(jobs_of_frame(jobs)) == 310.0


def test_a_run_that_is_not_over_has_no_makespan():
    jobs = job_rows({"finish": 150.0, "jct": 150.0}, {"state": "running"})
    assert math.isnan(makespan(jobs_of_frame(jobs)))


def test_example_run_keeps_its_own_books():
    jobs = example_run(jobs=40).jobs
    assert np.allclose(jobs["jct"], jobs["queueing"] + jobs["service"])
    assert np.allclose(jobs["gpu_seconds"], jobs["service"] * jobs["gpus"])
