"""Fairness: who got less than others."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.report.example_runs import example_run, job_rows

from gantline.lab.report.frames import jobs_of_frame
from gantline.lab.report.metrics import finish_time_fairness, jain_index, received_share
from gantline.lab.report.metrics.fairness import present_over_life


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_jain_lies_between_one_over_n_and_one(values):
    assert 1 / len(values) - 1e-9 <= jain_index(pl.Series(values)) <= 1 + 1e-9


def test_jain_at_its_ends():
    assert jain_index(pl.Series([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain_index(pl.Series([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert math.isnan(jain_index(pl.Series([], dtype=pl.Float64)))


def test_a_user_receives_the_share_of_the_gpu_time_they_asked_for():
    jobs = job_rows(
        {"user": "ann", "gpus": 2, "finish": 10.0, "gpu_seconds": 20.0},  # never waited
        {"user": "bob", "gpus": 1, "finish": 10.0, "gpu_seconds": 5.0},  # waited half the time
        {"user": "bob", "gpus": 1, "arrival": 10.0, "state": "waiting"},  # still waits at 20
        {"user": "cy", "gpus": 8, "state": "rejected"},
    )
    shares = dict(received_share(jobs, 20.0, "user").iter_rows())
    assert shares == {"ann": 1.0, "bob": 0.25}


def test_presence_is_averaged_over_the_life_of_each_job():
    jobs = job_rows({"arrival": 0.0, "finish": 10.0}, {"arrival": 5.0, "finish": 15.0}, {"state": "rejected"})
    assert present_over_life(jobs_of_frame(jobs.head(2)), jobs_of_frame(jobs), 15.0).tolist() == [1.5, 1.5]


@given(st.integers(0, 30))
def test_presence_agrees_with_adding_up_overlaps(seed):
    jobs = example_run(jobs=15, seed=seed).jobs
    born, gone = jobs["arrival"].to_numpy(), jobs["finish"].to_numpy()
    overlap = np.clip(np.minimum.outer(gone, gone) - np.maximum.outer(born, born), 0, None)
    assert present_over_life(jobs_of_frame(jobs), jobs_of_frame(jobs), 1e9) == pytest.approx(overlap.sum(axis=1) / (gone - born))


def test_rho_compares_with_a_private_share_of_the_cluster():
    # Two jobs of 4 GPUs share 4 GPUs for all their life: alone on half of them each would take twice its duration.
    jobs = job_rows(
        {"gpus": 4, "duration": 10.0, "finish": 20.0, "jct": 20.0},
        {"gpus": 4, "duration": 10.0, "finish": 20.0, "jct": 20.0},
    )
    jobs = jobs_of_frame(jobs)
    assert finish_time_fairness(jobs, jobs, 4, 20.0).tolist() == [1.0, 1.0]
    assert finish_time_fairness(jobs, jobs, 4, 20.0, "contention").tolist() == [2.0, 2.0]
    assert finish_time_fairness(jobs, jobs, 1, 20.0, "static").tolist() == [1.0, 1.0]


def test_a_share_beyond_the_request_does_not_speed_a_job_up():
    jobs = jobs_of_frame(job_rows({"gpus": 1, "duration": 10.0, "finish": 30.0, "jct": 30.0}))
    assert finish_time_fairness(jobs, jobs, 64, 30.0).tolist() == [3.0]


def test_the_static_definition_counts_everyone_who_was_there():
    everyone = job_rows(*[{"arrival": 0.0, "finish": 10.0, "jct": 10.0, "duration": 5.0, "gpus": 1}] * 8)
    rho = finish_time_fairness(jobs_of_frame(everyone.head(2)), jobs_of_frame(everyone), 4.0, 10.0, "static")
    assert rho.tolist() == [1.0, 1.0]  # 10 s against 5 s on a cluster that eight jobs share four ways
