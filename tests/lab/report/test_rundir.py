"""Run directories: whole or not at all, readable by others, refused with a reason."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.lab.report.example_runs import example_run

from gantline import simulate
from gantline.core.cluster import Node
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.lab.report.chrome_trace import trace_events, write_chrome_trace
from gantline.lab.report.frames import StoredRun, span_of
from gantline.lab.report.labels import names_of
from gantline.lab.report.metrics import BY_KEY, Window, fragmentation, fragmentation_series, measure, steadiness
from gantline.lab.report.rundir import is_run, plain, read_run, write_run

FRAMES = ["jobs", "allocations", "events", "series"]


@pytest.fixture
def run():
    return example_run(jobs=30, gap=100, until=3000.0)


@pytest.fixture
def stored(run, tmp_path):
    return write_run(run, tmp_path / "results" / "fifo")


def test_what_is_written_is_read_back(run, stored):
    again = read_run(stored)
    for name in FRAMES:
        assert_frame_equal(getattr(again, name), getattr(run, name))
    assert again.summary == run.summary
    assert again.jobs["finish"].is_nan().any()  # unfinished jobs stay NaN


def test_polars_pandas_and_duckdb_read_the_same_numbers(run, stored):
    file = stored / "jobs.parquet"
    mean = run.jobs["responsiveness"].drop_nans().mean()  # some jobs have not started
    assert pl.read_parquet(file)["responsiveness"].mean() == mean
    assert pd.read_parquet(file)["responsiveness"].mean() == pytest.approx(mean)
    assert duckdb.sql(f"select avg(responsiveness) from '{file}'").fetchall()[0][0] == pytest.approx(mean)
    unknown = run.jobs["finish"].is_nan().sum()
    assert duckdb.sql(f"select count(*) from '{file}' where finish is null").fetchall()[0][0] == unknown > 0
    query = f"select sum(len(devices)) from '{stored}/allocations.parquet'"
    assert duckdb.sql(query).fetchall()[0][0] == run.allocations["gpus"].sum()


def test_columns_we_do_not_know_are_kept(run, tmp_path):
    more = StoredRun(run.jobs.with_columns(colour=pl.lit("red")), run.allocations, run.events, run.series, run.summary)
    assert read_run(write_run(more, tmp_path / "r")).jobs["colour"].unique().to_list() == ["red"]


def test_a_run_is_not_overwritten_unless_asked(run, stored):
    with pytest.raises(RefusedError, match="exists already"):
        write_run(run, stored)
    other = example_run(jobs=5, name="other")
    write_run(other, stored, replace=True)
    assert read_run(stored).jobs.height == 5
    assert [entry.name for entry in stored.parent.iterdir()] == ["fifo"]


def test_replacing_never_removes_what_is_not_a_run(run, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    with pytest.raises(RefusedError, match="not a run directory"):
        write_run(run, tmp_path / "thesis", replace=True)
    assert (tmp_path / "thesis" / "chapter1.tex").exists()


def test_a_failure_while_writing_leaves_nothing_behind(run, tmp_path, monkeypatch):
    def full_disk(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_run(run, tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_replacing_keeps_the_old_run(run, stored, monkeypatch):
    monkeypatch.setattr(pl.DataFrame, "write_parquet", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        write_run(example_run(jobs=5), stored, replace=True)
    monkeypatch.undo()
    assert read_run(stored).jobs.height == run.jobs.height


def test_a_newer_schema_is_refused_by_name(stored):
    head = json.loads((stored / "summary.json").read_text())
    head["schema_version"] = 3
    (stored / "summary.json").write_text(json.dumps(head))
    with pytest.raises(RefusedError, match=r"written by a newer Gantline \(schema version 3.*upgrade"):
        read_run(stored)
    assert is_run(stored)


def test_a_run_that_counted_otherwise_is_refused(stored):
    head = json.loads((stored / "summary.json").read_text())
    head["schema_version"] = 1
    (stored / "summary.json").write_text(json.dumps(head))
    with pytest.raises(RefusedError, match=r"older Gantline.*without the time that changes cost.*run again"):
        read_run(stored)


def test_half_and_foreign_directories_are_refused_with_a_reason(stored, tmp_path):
    with pytest.raises(NotFoundError, match="no such run"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "photos").mkdir()
    with pytest.raises(UsageError, match=r"not a run directory: it has no summary\.json"):
        read_run(tmp_path / "photos")
    (tmp_path / "photos" / "summary.json").write_text('{"format": "albums"}')
    with pytest.raises(UsageError, match="not the summary of a run"):
        read_run(tmp_path / "photos")
    (tmp_path / "photos" / "summary.json").write_text("{")
    with pytest.raises(UsageError, match="not readable as JSON"):
        read_run(tmp_path / "photos")
    (stored / "events.parquet").unlink()
    with pytest.raises(UsageError, match=r"incomplete: events\.parquet is missing"):
        read_run(stored)


def test_a_damaged_or_exchanged_file_is_named(run, stored):
    whole = (stored / "jobs.parquet").read_bytes()
    (stored / "jobs.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"jobs\.parquet: is damaged"):
        read_run(stored)
    run.jobs.head(3).write_parquet(stored / "jobs.parquet")
    with pytest.raises(UsageError, match=r"has 3 rows where the summary counts"):
        read_run(stored)


def test_summaries_become_strict_json():
    odd = {"mean": math.nan, "n": np.int64(3), 5: (np.float64(1.5), {"b", "a"}), "path": pytest}
    assert plain(odd) | {"path": ""} == {"mean": None, "n": 3, "5": [1.5, ["a", "b"]], "path": ""}


# A run is measured from its own arrays or from the frames that were stored of it: the numbers are the same.


@dataclass(frozen=True)
class Together(Policy):
    """All jobs share one device."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, group=0, mode=Mode.SPACE) for k in range(len(snapshot.jobs))])


def jobs(count: int, seed: int, **more: object) -> list[dict[str, object]]:
    draw = np.random.default_rng(seed)
    arrivals = np.sort(draw.integers(0, 40 * count, count)).astype(float)
    return [
        {
            "job": f"j{k}",
            "arrival": float(arrival),
            "gpus": int(draw.choice([1, 2, 4, 8])),
            "duration": float(draw.integers(1, 900)),
            "user": f"u{draw.integers(4)}",
            "deadline": float(arrival + draw.integers(900, 3000)) if k % 3 == 0 else None,
            **more,
        }
        for k, arrival in enumerate(arrivals)
    ]


LOST = [NodeEvent(500, "node0", "down"), NodeEvent(1500, "node0", "up"), NodeEvent(900, "late", "join", Node("late", "gpu", 4))]
RUNS = {
    "fifo": lambda: simulate(jobs(60, 1), "2x8", "fifo"),
    "stopped and resumed at a cost": lambda: simulate(jobs(80, 2), "2x8", "las", round=60, costs=20),
    "nodes fail and join": lambda: simulate(jobs(50, 3), "3x4", "srtf", round=60, node_events=LOST),
    "stopped early": lambda: simulate(jobs(60, 4), "1x8", "fifo", until=1500),
    "a window": lambda: simulate(jobs(60, 5), "2x8", "srtf", track=(10, 40)),
    "elastic": lambda: simulate(jobs(40, 6, min_gpus=1, max_gpus=8, gpus=4), "2x8", "optimus", round=60),
    "one device for all": lambda: simulate(jobs(12, 7, gpus=1), "1x4", Together()),
    "none": lambda: simulate(jobs(1, 8), "1x8", "fifo"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_simulation_is_measured_as_its_frames_are(name: str) -> None:
    run = RUNS[name]()
    stored = StoredRun(run.jobs, run.allocations, run.events, run.series, run.summary)
    found, expected = measure(stored), measure(run)
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-9, nan_ok=True)
    assert steadiness(stored) == steadiness(run)


# All numbers of a run at once.


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


# The Chrome trace: every allocation on every device, whole nodes as processes.

RUN = example_run(jobs=30, gap=200)
TOLD = replace(RUN, summary={**RUN.summary, "node_gpus": [4, 4]})
START = RUN.jobs["arrival"].min()


def of_kind(events, phase):
    return [event for event in events if event["ph"] == phase]


def test_slices_are_the_allocations_device_by_device():
    slices = of_kind(trace_events(TOLD), "X")
    assert len(slices) == RUN.allocations["gpus"].sum()
    assert sum(s["dur"] for s in slices) / 1e6 == pytest.approx(RUN.jobs["gpu_seconds"].sum())
    first = RUN.allocations.row(0, named=True)
    mine = [s for s in slices if s["name"] == first["job"]]
    assert [s["tid"] for s in mine] == first["devices"]
    assert mine[0]["ts"] == pytest.approx((first["start"] - START) * 1e6, abs=0.01)
    assert mine[0]["args"] == {"gpus": first["gpus"], "type": "v100", "reason": "finished", "user": RUN.jobs["user"][0]}


def test_devices_stand_under_their_nodes():
    events = list(trace_events(TOLD))
    nodes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert nodes == {0: "cluster", 1: "node 0", 2: "node 1"}
    assert all(e["pid"] == 1 + e["tid"] // 4 for e in of_kind(events, "X"))
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} <= {f"GPU {i}" for i in range(8)}


def test_without_known_nodes_all_devices_belong_to_the_cluster():
    assert {e["pid"] for e in of_kind(trace_events(RUN), "X")} == {0}


def test_slices_on_a_device_do_not_overlap():
    free_at: dict[int, float] = {}
    for event in of_kind(trace_events(RUN), "X"):
        assert event["ts"] >= free_at.get(event["tid"], 0.0) - 0.01
        free_at[event["tid"]] = event["ts"] + event["dur"]


def test_counters_follow_the_series():
    counters = [e for e in of_kind(trace_events(RUN), "C") if e["name"] == "jobs"]
    assert [e["args"]["waiting"] for e in counters] == RUN.series["queued"].to_list()


def test_the_file_is_one_json_object(tmp_path):
    odd = example_run(jobs=3, names=['"quoted"\n</script>', "\u2028"])
    read = json.loads(write_chrome_trace(odd, tmp_path / "new" / "trace.json").read_text(encoding="utf-8"))
    assert '"quoted"\n</script>' in {e["name"] for e in read["traceEvents"]}
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["trace.json"]
