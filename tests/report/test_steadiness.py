"""The overload guard."""

import math

import polars as pl
from tests.report.example_runs import example_run, job_rows

from gantline.report.frames import StoredRun
from gantline.report.metrics import Steadiness, steadiness


def test_a_light_load_is_steady():
    found = steadiness(example_run(jobs=200, gap=1500))
    assert found.steady
    assert 0.05 < found.offered_load < 0.9
    assert "does not keep growing" in str(found)


def test_more_work_than_capacity_is_named_with_its_numbers():
    found = steadiness(example_run(jobs=200, gap=100))
    assert found.overloaded
    assert found.growing
    assert "No steady state" in str(found)
    assert f"{found.offered_load:.2f} times" in str(found)


def test_jobs_that_come_all_at_once_have_no_steady_state():
    run = example_run(jobs=3)
    together = StoredRun(job_rows({}, {}), run.allocations, run.events, run.series)
    found = steadiness(together)
    assert math.isnan(found.offered_load)
    assert "compare makespans" in str(found)


def test_a_queue_grows_only_if_it_rises_throughout_and_doubles():
    assert Steadiness(0.9, (1.0, 2.0, 3.0, 4.0, 5.0)).growing
    assert not Steadiness(0.9, (1.0, 2.0, 1.5, 4.0, 5.0)).growing
    assert not Steadiness(0.9, (4.0, 4.1, 4.2, 4.3, 4.4)).growing
    assert not Steadiness(0.9, (0.0, 0.1, 0.2, 0.3, 0.4)).growing  # less than one job is no queue
    assert Steadiness(0.9, (3.0, 4.0, 6.0)).growing  # it doubled
    assert not Steadiness(0.9, (3.0, 4.0, 5.9)).growing
    assert not Steadiness(0.9, (1.0, 2.0, 2.0, 4.0)).growing  # it stood still for a while


def test_a_little_more_than_there_is_is_too_much():
    assert Steadiness(1.01, ()).overloaded
    assert not Steadiness(1.0, ()).overloaded


def test_the_work_of_the_last_arrival_belongs_to_the_time_after_it():
    run = example_run(jobs=20, gap=1500)
    last = run.jobs["arrival"].max()
    heavier = run.jobs.with_columns(duration=pl.when(pl.col("arrival") == last).then(1e6).otherwise(pl.col("duration")))
    assert steadiness(StoredRun(heavier, run.allocations, run.events, run.series)).offered_load == steadiness(run).offered_load
