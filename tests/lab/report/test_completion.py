"""Completion times: what counts, and how the numbers are taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.report.example_runs import example_run, job_rows

import gantline
from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.lab.report.frames import ALLOCATIONS, completed, jobs_of_frame
from gantline.lab.report.metrics import (
    Window,
    bounded_slowdown,
    cdf,
    deadline_outcome,
    distribution,
    energy,
    gpu_hours,
    makespan,
    measure,
    money,
    per_group,
)
from gantline.lab.report.metrics.measure import ended_run
from gantline.simulator.objective import WORDS

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


# Resizes, migrations, time lost, jobs across nodes, deadlines met: counted by hand on small runs.


class Dance(Policy):
    """One device, then two, then two on another node, then four over both."""

    name = "dance"

    def decide(self, snapshot: Snapshot) -> Plan:
        steps = [(0.0, (0,)), (100.0, (0, 1)), (200.0, (2, 3)), (300.0, (0, 1, 2, 3))]
        devices = [step for step in steps if step[0] <= snapshot.now][-1][1]
        later = min((step[0] for step in steps if step[0] > snapshot.now), default=math.inf)
        return Plan.assign([Assignment(k, devices=devices) for k in range(len(snapshot.jobs))], valid_until=later)


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": 1, "duration": 1000.0, "min_gpus": 1, "max_gpus": 4, **more}


def test_every_change_is_counted_and_paid() -> None:
    run = simulate([job("a")], "gpu:2x2", Dance(), costs="start=5,resume=7,resize=10,move=20")
    found = measure(run)
    assert (found["resizes"], found["migrations"]) == (2, 1)
    assert found["time_lost"] == pytest.approx(5 + 10 + 20 + 10)
    assert found["cross_node"] == 1.0
    assert {name: run.summary[name] for name in ("resizes", "migrations", "cross_node_jobs", "time_lost")} == {
        "resizes": 2,
        "migrations": 1,
        "cross_node_jobs": 1,
        "time_lost": pytest.approx(45.0),
    }


def test_what_a_gang_did_not_live_to_pay_is_not_counted() -> None:
    run = simulate([job("a")], "gpu:2x2", Dance(), costs="resize=500", until=150.0)
    assert run.summary["time_lost"] == pytest.approx(50.0)


def test_rigid_jobs_within_nodes_change_nothing() -> None:
    run = simulate([job("a", min_gpus=1, max_gpus=1), job("b", max_gpus=1)], "gpu:2x2", "fifo")
    found = measure(run)
    assert (found["resizes"], found["migrations"], found["cross_node"], found["time_lost"]) == (0, 0, 0.0, 0.0)
    assert math.isnan(found["deadline_satisfaction"])


def test_deadlines_met_are_a_share_of_those_decided() -> None:
    jobs = [job("in time", deadline=1500.0), job("late", deadline=900.0), job("none")]
    run = simulate(jobs, "gpu:1x4", "fifo")
    assert measure(run)["deadline_satisfaction"] == run.summary["deadline_satisfaction"] == 0.5
    cut = simulate([*jobs, job("open", deadline=5000.0)], "gpu:1x2", "fifo", until=950.0)  # two run, one waits, one deadline is to come
    assert measure(cut)["deadline_satisfaction"] == cut.summary["deadline_satisfaction"] == 0.0
    assert "deadline_satisfaction" not in simulate([job("none")], "gpu:1x4", "fifo").summary


def test_a_model_with_costs_of_its_own_is_not_guessed_at() -> None:
    from gantline.models.model import PerformanceModel

    class Own(PerformanceModel):
        def cost(self, gangs: Any) -> Any:
            return [3.0] * len(gangs)

    assert simulate([job("a")], "gpu:1x4", "fifo", performance=Own()).summary["time_lost"] is None


# Bills, energy, deadlines and the table per user.

HELD = pl.DataFrame(
    [
        ("a", 0.0, 3600.0, "v100", [0], [0, 1], 2, "finished"),
        ("b", 0.0, 1800.0, "v100", [0], [2], 1, "preempted"),
        ("b", 1800.0, 5400.0, "a100", [1], [4], 1, "finished"),
    ],
    schema=ALLOCATIONS,
    orient="row",
)


def test_hours_are_held_gpus_times_time_by_type():
    assert dict(gpu_hours(HELD).iter_rows()) == {"a100": 1.0, "v100": 2.5}


def test_money_and_energy_follow_the_type():
    assert money(HELD, {"v100": 2.0, "a100": 5.0}) == pytest.approx(10.0)
    assert energy(HELD, {"v100": 300, "a100": 400}) == pytest.approx(1.15)


def test_a_shared_gpu_is_paid_once_however_many_share_it_one_after_the_other():
    spans = [("long", 0.0, 3600.0), ("first guest", 600.0, 1200.0), ("second guest", 1800.0, 2400.0), ("last guest", 3000.0, 5400.0)]
    held = pl.DataFrame([(*span, "v100", [0], [0], 1, "finished") for span in spans], schema=ALLOCATIONS, orient="row")
    assert dict(gpu_hours(held).iter_rows()) == {"v100": 1.5}
    assert money(held, {"v100": 2.0}) == pytest.approx(3.0)


def test_a_type_without_a_price_is_named():
    with pytest.raises(UsageError, match="no price is given for the device type 'a100'"):
        money(HELD, {"v100": 2.0})


def test_deadlines_are_met_missed_or_open():
    jobs = job_rows(
        {"deadline": 10.0, "finish": 10.0},
        {"deadline": 10.0, "finish": 10.5},
        {"deadline": 50.0, "state": "waiting"},
        {"deadline": 150.0, "state": "running"},
        {"deadline": 150.0, "state": "rejected"},
        {"finish": 3.0},
    )
    assert deadline_outcome(jobs, 100.0).to_list() == ["met", "missed", "missed", "open", "missed", ""]


def test_the_table_per_user_adds_up_to_the_run():
    run = example_run(jobs=50)
    table = per_group(run.jobs, "user", 1e9)
    assert table["jobs"].sum() == run.jobs.height
    assert table["gpu_hours"].sum() == pytest.approx(run.jobs["gpu_seconds"].sum() / 3600)
    assert table["gpu_hours"].is_sorted(descending=True)
    ann = run.jobs.filter(pl.col("user") == "ann")
    assert table.filter(pl.col("user") == "ann")["jct_mean"][0] == pytest.approx(ann["jct"].mean())


def test_the_table_per_queue_keeps_groups_without_a_finished_job():
    table = per_group(job_rows({"queue": "a", "state": "waiting"}), "queue", 10.0)
    assert table["completed"].to_list() == [0]
    assert table["jct_mean"].to_list() == [None] or math.isnan(table["jct_mean"][0])


# Tracked windows and warm-up.

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


# An objective of a finished run is the metric of the same name.


def a_run(**options: object) -> gantline.Run:
    jobs = pl.DataFrame(
        {
            "job": [f"job-{number}" for number in range(40)],
            "arrival": [60.0 * number for number in range(40)],
            "gpus": [1 + number % 4 for number in range(40)],
            "duration": [100.0 + 37.0 * (number * 7 % 11) for number in range(40)],
            "deadline": [60.0 * number + 600.0 if number % 3 else None for number in range(40)],
        }
    )
    return gantline.simulate(jobs, "1x4", "fifo", prices="gpu=3", power="gpu=300/60", **options)


@pytest.mark.parametrize("options", [{}, {"track": (10, 29)}])
def test_every_word_agrees_with_the_metrics(options: dict[str, object]) -> None:
    run = a_run(**options)
    found, metrics = ended_run(run), measure(run)
    for word, known in WORDS.items():
        expected = metrics[known.metric]
        assert found.value(word) == pytest.approx(1.0 - expected if word == "deadlines" else expected, nan_ok=bool(options)), word
