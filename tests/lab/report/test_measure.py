"""All numbers of a run at once."""

import math
from dataclasses import replace

import polars as pl
import pytest
from tests.lab.report.example_runs import example_run

from gantline.core.errors import UsageError
from gantline.lab.report.frames import StoredRun, span_of
from gantline.lab.report.labels import names_of
from gantline.lab.report.metrics import BY_KEY, Window, fragmentation, fragmentation_series, measure


def test_every_metric_of_the_catalogue_is_measured_and_no_other():
    assert set(measure(example_run())) == set(BY_KEY)


def test_numbers_agree_with_the_frames():
    run = example_run(jobs=80, seed=3)
    found = measure(run, prices={"v100": 3.0}, watts={"v100": 500})
    assert found["jct_mean"] == pytest.approx(run.jobs["jct"].mean())
    assert found["gpu_hours"] == pytest.approx(run.jobs["gpu_seconds"].sum() / 3600)
    assert found["money"] == pytest.approx(3 * found["gpu_hours"])
    assert found["energy"] == pytest.approx(0.5 * found["gpu_hours"])
    span = run.jobs["finish"].max() - run.jobs["arrival"].min()
    assert found["utilization"] == pytest.approx(run.jobs["gpu_seconds"].sum() / (8 * span))
    waited = (run.jobs["first_start"] - run.jobs["arrival"]).sum()
    assert found["queue_mean"] == pytest.approx(waited / span)  # Little's law, exact over a run that ends empty


def test_what_cannot_be_known_is_nan():
    found = measure(example_run(users=["one"]))
    assert [key for key in found if math.isnan(found[key])] == [
        "jain_users",
        "cross_rack",
        "communication",
        "link_overload",
        "time_lost",
        "fragmentation",
        "typical_fragmentation",
        "money",
        "energy",
        "carbon",
        "energy_cost",
    ]


def test_a_run_cut_short_counts_what_is_unfinished():
    run = example_run(jobs=100, gap=100, until=5000.0)
    found = measure(run)
    assert found["unfinished"] > 0
    assert found["completed"] + found["unfinished"] == found["jobs"]


def test_a_tracked_window_measures_its_jobs_only():
    run = example_run(jobs=100)
    window = Window(20, 60)
    found = measure(run, window=window, prices={"v100": 1.0})
    tracked = run.jobs.sort("arrival")[20:60]
    assert found["jobs"] == 40
    assert found["jct_mean"] == pytest.approx(tracked["jct"].mean())
    assert found["money"] == pytest.approx(tracked["gpu_seconds"].sum() / 3600)


def test_a_run_without_jobs_has_counts_but_no_means():
    run = example_run(jobs=2)
    empty = StoredRun(run.jobs.clear(), run.allocations.clear(), run.events.clear(), run.series.clear())
    found = measure(empty)
    assert found["jobs"] == 0
    assert math.isnan(found["jct_mean"])


def test_a_missing_column_is_named():
    run = example_run(jobs=2)
    broken = StoredRun(run.jobs.drop("jct"), run.allocations, run.events, run.series)
    with pytest.raises(UsageError, match="jobs frame lacks jct"):
        measure(broken)


def named(**summary):
    run = example_run(jobs=2)
    return StoredRun(run.jobs, run.allocations, run.events, run.series, summary)


def test_runs_of_one_policy_are_told_apart_by_what_differs():
    runs = [named(policy="las", seed=1), named(policy="las", seed=2), named(policy="fifo", seed=1)]
    assert names_of(runs) == ["las seed=1", "las seed=2", "fifo"]
    runs = [named(policy="las", settings={"queues": n, "starve": 8}, seed=1) for n in (2, 3)]
    assert names_of(runs) == ["las queues=2", "las queues=3"]


def test_equal_runs_are_numbered():
    assert names_of([named(policy="las"), named(policy="las"), named()]) == ["las", "las #2", "run"]


def test_a_run_stopped_early_ends_when_its_summary_says():
    run = example_run(jobs=60, gap=100)
    end = 3000.0
    left = pl.col("finish") > end
    jobs = run.jobs.with_columns(
        state=pl.when(left).then(pl.lit("waiting")).otherwise("state"),
        **{name: pl.when(left).then(math.nan).otherwise(name) for name in ("finish", "jct")},
    )
    held = run.allocations.filter(pl.col("start") < end)
    held = held.with_columns(end=pl.when(pl.col("end") > end).then(math.nan).otherwise("end"))
    found = measure(StoredRun(jobs, held, run.events, run.series, {"end": end}), prices={"v100": 1.0})
    assert (run.jobs["arrival"] > end).any()
    assert found["jobs"] == found["completed"] + found["unfinished"] == 60
    busy = (held["gpus"] * (held["end"].fill_nan(end) - held["start"])).sum()
    assert found["money"] == pytest.approx(busy / 3600)
    assert found["utilization"] == pytest.approx(busy / 8 / (end - run.jobs["arrival"].min()))


def test_nodes_are_read_from_the_summary_when_it_names_them():
    run = example_run(jobs=40, gap=200)
    told = StoredRun(run.jobs, run.allocations, run.events, run.series, {"cluster": "v100:2x4"})
    assert measure(told)["fragmentation"] == fragmentation(fragmentation_series(run, [4, 4]), *span_of(run))
    too_small = StoredRun(run.jobs, run.allocations, run.events, run.series, {"cluster": "v100:1x2"})
    assert math.isnan(measure(too_small)["fragmentation"])


def test_metrics_do_not_depend_on_the_order_of_rows():
    run = example_run(jobs=50, seed=5)
    mixed = StoredRun(
        run.jobs.sample(fraction=1.0, shuffle=True, seed=1),
        run.allocations.sample(fraction=1.0, shuffle=True, seed=1),
        run.events,
        run.series.sample(fraction=1.0, shuffle=True, seed=1),
    )
    one, other = (measure(replace(r, summary={"cluster": "v100:2x4"}), prices={"v100": 1.0}) for r in (run, mixed))
    assert {k: v for k, v in one.items() if v == v} == pytest.approx({k: v for k, v in other.items() if v == v})
