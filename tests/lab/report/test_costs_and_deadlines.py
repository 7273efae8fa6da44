"""Bills, energy, deadlines and the table per user."""

import math

import polars as pl
import pytest
from tests.lab.report.example_runs import example_run, job_rows

from gantline.core.errors import UsageError
from gantline.lab.report.frames import ALLOCATIONS
from gantline.lab.report.metrics import deadline_outcome, energy, gpu_hours, money, per_group

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
