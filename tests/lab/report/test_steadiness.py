"""The overload guard."""

import math

import numpy as np
import polars as pl
import pytest
from tests.lab.report.example_runs import example_run, job_rows

from gantline import simulate
from gantline.lab.report.frames import StoredRun
from gantline.lab.report.metrics import Steadiness, steadiness
from gantline.lab.report.metrics.steadiness import from_empty_share
from gantline.traces.generators import generate


def test_a_light_load_is_steady():
    found = steadiness(example_run(jobs=200, gap=1500))
    assert found.steady
    assert 0.05 < found.offered_load < 0.9
    assert "shows no growth that lasts" in str(found)


def test_jobs_that_come_all_at_once_have_no_steady_state():
    run = example_run(jobs=3)
    together = StoredRun(job_rows({}, {}), run.allocations, run.events, run.series)
    found = steadiness(together)
    assert math.isnan(found.offered_load)
    assert "compare makespans" in str(found)


def test_a_queue_grows_if_it_rises_nearly_all_the_time_and_never_empties():
    rising = tuple(float(k) for k in range(1, 11))
    assert Steadiness(0.9, rising).growing
    assert Steadiness(0.9, (*rising[:4], 6.0, 5.0, *rising[6:])).growing  # two stretches changed places
    assert not Steadiness(0.9, tuple(reversed(rising))).growing
    assert not Steadiness(0.9, (5.0, 9.0, 2.0, 7.0, 1.0, 8.0, 3.0, 10.0, 4.0, 6.0)).growing
    assert not Steadiness(0.9, rising, idle=0.1).growing  # it emptied in the second half
    assert not Steadiness(0.9, tuple(value / 20 for value in rising)).growing  # less than one job is no queue


def test_a_little_more_than_there_is_is_too_much():
    assert Steadiness(1.01, ()).overloaded
    assert not Steadiness(1.0, ()).overloaded
    assert not Steadiness(0.9, (), needed_load=1.0).overloaded
    assert Steadiness(0.9, (), needed_load=1.02).overloaded


def test_overload_by_what_the_policy_itself_costs_is_seen_and_named():
    """At a load of 0.8 every start, stop and resume of LAS costs a quarter of a mean job: more GPU time than there is."""
    trace = generate("generic", seed=1, jobs=200, gpus=8, load=0.8, durations="weibull(scale=1h, shape=1)")
    free, dear = (simulate(trace, "2x4", "las", round=300, costs=costs) for costs in ("", "900"))
    assert not steadiness(free).overloaded
    found = steadiness(dear)
    assert found.needed_load > 1.0 > found.offered_load
    assert "with what starts, stops and rounds cost" in str(found)


def test_spare_devices_that_elastic_jobs_hold_are_no_need():
    jobs = [{"job": f"j{k}", "arrival": 100.0 * k, "gpus": 1, "min_gpus": 1, "max_gpus": 8, "duration": 300.0} for k in range(30)]
    run = simulate(jobs, "1x8", "equal-share", costs="30")
    assert run.jobs["gpu_seconds"].sum() > 30 * 300
    assert steadiness(run).needed_load == steadiness(run).offered_load


@pytest.mark.parametrize(
    ("devices", "load", "jobs", "exact"), [(1, 0.9, 300, 0.27), (16, 0.95, 1000, 0.37), (64, 0.9, 1000, 0.32), (64, 0.7, 3000, 0.06)]
)
def test_an_empty_start_hides_about_as_much_as_the_transient_of_erlangs_queue(devices, load, jobs, exact):
    """Exact values from the transient of M/M/c, averaged over the time of that many arrivals."""
    work = np.random.default_rng(0).exponential(1.0, jobs)
    assert from_empty_share(work / work.std() * work.mean(), load, devices) == pytest.approx(exact, abs=0.09)
    assert from_empty_share(work, 1.1, devices) == 0.0


def test_a_run_that_is_short_for_its_load_says_how_long_it_would_have_to_be():
    told = Steadiness(0.95, (1.0,) * 10, missing=0.4, jobs=1000).from_empty
    assert "1,000 jobs at a load of 0.95 show mean queueing about 40 % below that of a steady state (about 11,000 jobs would come" in told
    assert Steadiness(0.5, (1.0,) * 10, missing=0.02, jobs=1000).from_empty == ""


def test_the_work_of_the_last_arrival_belongs_to_the_time_after_it():
    run = example_run(jobs=20, gap=1500)
    last = run.jobs["arrival"].max()
    heavier = run.jobs.with_columns(duration=pl.when(pl.col("arrival") == last).then(1e6).otherwise(pl.col("duration")))
    assert steadiness(StoredRun(heavier, run.allocations, run.events, run.series)).offered_load == steadiness(run).offered_load
