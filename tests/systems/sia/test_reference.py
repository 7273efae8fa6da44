"""Sia's artifact on its 13-job workload: recorded decisions give the same seconds, free decisions nearly the same averages."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.jobs import held_by
from tests.simulator.references import reference

from gantline.simulator.simulate import simulate
from gantline.traces.importers import import_trace

CLUSTER = "rtx:3x8,dgx-ext:2x8,quad:1x4"


def published(folder: Path) -> pl.DataFrame:
    return pl.read_csv(folder / "results" / "sia_phoebe13_glpk.jobs.csv").select(
        pl.col("name"), pl.col("finish_s").cast(pl.Float64), "restarts", pl.col("attained_gpu_s").cast(pl.Float64), "submit_s"
    )


def test_recorded_decisions_give_every_completion_second_restart_and_gpu_second() -> None:
    folder = reference("sia")
    trace = import_trace("pollux", folder / "workloads" / "short_phoebe_first13.csv")
    table = str(folder / "results" / "sia_phoebe13_glpk.allocs.csv")
    found = simulate(trace, CLUSTER, "recorded", settings={"table": table}, regime="sia", round=60, profiles=folder / "profiles")
    ours = found.jobs.select(name="job", finish_s="finish", restarts="restarts", attained_gpu_s="gpu_seconds")
    assert ours.equals(published(folder).select(ours.columns))


@pytest.mark.long
def test_free_decisions_come_near_the_recorded_averages() -> None:
    folder = reference("sia")
    trace = import_trace("pollux", folder / "workloads" / "short_phoebe_first13.csv")
    found = simulate(trace, CLUSTER, "sia", regime="sia", round=60, profiles=folder / "profiles")
    theirs = published(folder)
    jct = (theirs["finish_s"] - theirs["submit_s"]).mean()
    assert found.summary["average_jct"] == pytest.approx(jct, rel=0.05)
    assert found.summary["makespan"] == pytest.approx(theirs["finish_s"].max() - theirs["submit_s"].min(), rel=0.05)  # type: ignore[operator]
    assert found.summary["gpu_hours"] == pytest.approx(theirs["attained_gpu_s"].sum() / 3600, rel=0.1)
    assert found.summary["restarts"] == pytest.approx(theirs["restarts"].sum(), rel=0.1)


def test_gavel_on_tuned_jobs_comes_near_the_recorded_run() -> None:
    """Its round mechanism is not that of the artifact to the letter, yet averages agree."""
    folder = reference("sia")
    trace = import_trace("pollux", folder / "workloads" / "short_phoebe_first13.csv")
    found = simulate(trace, CLUSTER, "gavel.max_sum_throughput_perf", regime="sia", round=360, profiles=folder / "profiles")
    theirs = pl.read_csv(folder / "results" / "gavel_phoebe13.jobs.csv")
    assert found.summary["average_jct"] == pytest.approx(theirs["jct_s"].mean(), rel=0.05)
    assert found.summary["gpu_hours"] == pytest.approx(theirs["attained_gpu_s"].sum() / 3600, rel=0.05)


def test_the_published_pipeline_runs_in_whole_replicas(tmp_path: Path) -> None:
    """GPT with 2.8 billion parameters: two stages on A100, eight on RTX 2080 Ti, 48 micro-batches a replica."""
    folder = reference("sia")
    path = tmp_path / "gpt.csv"
    path.write_text("name,time,application,num_replicas,batch_size\ngpt,0,gpt_pmp,2,384\ncifar,10,cifar10,4,1024\n")
    trace = import_trace("pollux", path)
    assert trace.frame["kind"].to_list() == ["hybrid", ""]
    found = simulate(trace, "rtx:3x8,dgx-ext:2x8,quad:1x4", "sia", regime="sia", profiles=folder / "profiles")
    held = held_by(found, "gpt").select("type", "gpus").unique().rows()
    assert all(gpus % {"dgx-ext": 2, "rtx": 8}[kind] == 0 for kind, gpus in held)
    assert max(gpus for _, gpus in held) == 16
    assert found.jobs["state"].to_list() == ["completed", "completed"]


@pytest.mark.long
def test_pollux_without_types_restarts_as_often_as_recorded_and_takes_as_long() -> None:
    """The recorded run stops at 2,760 s: seven jobs have ended by then, each after one GPU, two and four, the most it may have."""
    folder = reference("sia")
    trace = import_trace("pollux", folder / "workloads" / "short_phoebe_first13.csv")
    found = simulate(trace, CLUSTER, "pollux", regime="sia", round=60, profiles=folder / "profiles", until=2760.0)
    theirs = pl.read_csv(folder / "results" / "pollux_phoebe13.jobs.csv")
    both = found.jobs.join(theirs, left_on="job", right_on="name", suffix="_recorded")
    ended = both.filter(pl.col("finish_s").is_not_null())
    assert ended["jct"].mean() == pytest.approx(ended["jct_s"].mean(), rel=0.1)
    assert both["restarts"].sum() == pytest.approx(both["restarts_recorded"].sum(), rel=0.1)
    assert both["gpu_seconds"].sum() == pytest.approx(both["attained_gpu_s"].sum(), rel=0.1)
    assert found.allocations["gpus"].max() == 4  # of the Quadro node, the smallest pool
