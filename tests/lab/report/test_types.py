"""Device types of a mixed cluster, each for itself: use, queue and fragmentation."""

from __future__ import annotations

import io
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.lab.report.example_runs import example_run, job_rows

from gantline import simulate
from gantline.lab.report.frames import StoredRun
from gantline.lab.report.html import render_report
from gantline.lab.report.metrics import Steadiness, busy_share, per_type, steadiness
from gantline.lab.report.metrics.columns import bin_means, time_mean
from gantline.lab.report.metrics.steadiness import from_empty_share
from gantline.lab.report.terminal import run_summary
from gantline.simulator.areas import integral
from gantline.simulator.run_columns import SeriesColumns
from gantline.traces.generators import generate

JOBS = [
    {"job": "fast-1", "arrival": 0.0, "gpus": 2, "duration": 100.0, "type": "v100", "queue": "research"},
    {"job": "fast-2", "arrival": 0.0, "gpus": 2, "duration": 100.0, "type": "v100", "queue": "research"},
    {"job": "slow-1", "arrival": 0.0, "gpus": 1, "duration": 50.0, "type": "k80", "queue": "service"},
    {"job": "slow-2", "arrival": 0.0, "gpus": 1, "duration": 200.0, "type": "k80", "queue": "service"},
    {"job": "slow-3", "arrival": 0.0, "gpus": 2, "duration": 20.0, "type": "k80", "queue": "service"},
]


def test_each_type_has_its_use_its_queue_and_its_fragmentation() -> None:
    run = simulate(JOBS, "v100:1x2,k80:1x2", "fifo", settings={"backfill": "skip"})
    v100, k80 = per_type(run).iter_rows(named=True)
    assert run.summary["end"] == 220.0
    assert (v100["type"], v100["gpus"], v100["jobs"]) == ("v100", 2, 2)
    assert v100["utilization"] == pytest.approx(400 / 440)
    assert v100["queue_mean"] == pytest.approx(100 / 220)  # fast-2 waits for 100 s
    assert v100["fragmentation"] == 0.0
    assert (k80["type"], k80["gpu_hours"]) == ("k80", pytest.approx(290 / 3600))
    assert k80["queue_mean"] == pytest.approx(200 / 220)  # slow-3 waits for 200 s,
    assert k80["fragmentation"] == pytest.approx(1.0)  # and from 50 s on for the second of two GPUs


def test_a_shared_gpu_is_in_use_once() -> None:
    jobs = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 100.0, "gpu_demand": 0.4, "type": "a"} for k in range(2)]
    run = simulate(jobs, "a:1x1,b:1x1", "sharing")
    a, b = per_type(run).iter_rows(named=True)
    assert a["utilization"] == pytest.approx(1.0)
    assert (b["jobs"], b["utilization"]) == (0, 0.0)


def test_reports_and_the_terminal_show_types_and_queues() -> None:
    run = simulate(JOBS, "v100:1x2,k80:1x2", "fifo")
    page = render_report([run])
    assert "<h2>Device types</h2>" in page
    assert "<h2>Queues</h2>" in page
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(run_summary(run))
    told = console.export_text()
    assert "v100" in told
    assert "fragmented" in told
    assert "research" in told
    assert "GPU-h" in told


# The overload guard.


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


# Step functions: integrals and means agree with adding up by hand.

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
