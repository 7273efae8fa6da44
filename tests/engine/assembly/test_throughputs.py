"""Measured throughputs in a run: what a job's speed is, and every way in which a table can fail a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.systems.gavel.tiny_world import table, trace

from gantline.core.errors import GantlineError, NotFoundError, TraceError, UsageError
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


def test_a_job_runs_at_the_speed_of_its_type_there() -> None:
    jobs = trace(("big", 400.0, 0.0), ("big", 400.0, 0.0), ("big", 400.0, 0.0))
    run = simulate(jobs, "v100:1,p100:1,k80:1", "fifo", throughputs=table())
    assert sorted(run.jobs["service"].to_list()) == pytest.approx([100.0, 200.0, 400.0])


def test_a_job_is_never_put_where_it_cannot_run() -> None:
    run = simulate(trace(("fussy", 400.0, 0.0), ("fussy", 400.0, 0.0)), "k80:1,v100:1", "srtf", throughputs=table())
    assert run.allocations["type"].unique().to_list() == ["v100"]


def test_steps_without_durations_give_the_same_run() -> None:
    """A trace imported without a table counts its steps as seconds."""
    told = trace(("big", 400.0, 0.0), ("small", 400.0, 5.0))
    untold = Trace.from_frame(told.frame.with_columns(duration="work"))
    one, two = (simulate(jobs, "p100:1", "fifo", throughputs=table()).jobs["jct"].to_list() for jobs in (told, untold))
    assert one == pytest.approx(two)


@pytest.mark.parametrize("policy", ["afs", "equal-share", "voda.elastic_fifo", "elasticflow"])
def test_policies_that_size_jobs_take_a_table_for_what_it_is(policy: str) -> None:
    """It estimates speeds of pairs, which is not what such policies ask of a model whose speeds are learned."""
    run = simulate(trace(("big", 400.0, 0.0), ("small", 400.0, 5.0)), "v100:1x4", policy, throughputs=table())
    assert not run.incidents
    assert set(run.jobs["state"].to_list()) == {"completed"}


def test_a_table_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "speeds.json"
    path.write_text(json.dumps({"v100": {"('big', 1)": {"null": 8.0}}}))
    assert simulate(trace(("big", 400.0, 0.0)), "v100:1", "fifo", throughputs=path).jobs["jct"][0] == pytest.approx(50.0)
    with pytest.raises(NotFoundError, match="no such file"):
        simulate(trace(("big", 400.0, 0.0)), "v100:1", "fifo", throughputs=tmp_path / "none.json")


@pytest.mark.parametrize(
    ("body", "cluster", "words"),
    [
        ({"v100": {"('other', 1)": {"null": 1.0}}}, "v100:1", "no throughput of 'big' with 1 devices"),
        ({"v100": {"('big', 2)": {"null": 1.0}}}, "v100:1", "it has sizes \\[2\\]"),
        ({"v100": {"('big', 1)": {"null": 1.0}}}, "v100:1,k80:1", "job '0': no throughput of \\('big', 1\\) on 'k80'"),
        ({"v100": {"('big', 1)": {"null": 0.0}}}, "v100:1", "speed 0 on every device type"),
        ({"v100": {"('big', 1)": {"null": -1.0}}}, "v100:1", "speed -1.0 is not possible"),
        ({"v100": {"('big', 1)": {"null": "fast"}}}, "v100:1", "'fast' is not a number"),
        ({"v100": {"('big', 1)": {"null": 1.0, "('big', 1)": [1.0, 0.0]}}}, "v100:1", "only one of the two makes progress"),
        ({"v100": {"big": {"null": 1.0}}}, "v100:1", "'big' is no job type"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_name(body: dict[str, Any], cluster: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "speeds.json"
    path.write_text(json.dumps(body))
    with pytest.raises(GantlineError, match=words):
        simulate(trace(("big", 400.0, 0.0)), cluster, "fifo", throughputs=path)


def test_a_trace_without_job_types_says_how_to_get_them() -> None:
    jobs = Trace.from_records([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 10.0}])
    with pytest.raises(UsageError, match=r"no column 'throughput_key'.*gantline trace import gavel"):
        simulate(jobs, "v100:1", "fifo", throughputs=table())


def test_a_gang_across_nodes_without_a_speed_for_that_is_named() -> None:
    with pytest.raises(TraceError, match="across nodes"):
        simulate(trace(("big", 400.0, 0.0, 2)), "v100:2x1", "fifo", throughputs=table(), across_nodes=True)


def test_the_bill_counts_device_hours_by_type(tmp_path: Path) -> None:
    jobs = trace(("big", 4 * 3600.0, 0.0), ("big", 3600.0, 0.0))
    prices = tmp_path / "prices.csv"
    prices.write_text("type,price\nv100,2.5\nk80,0.5\n")
    run = simulate(jobs, "v100:1,k80:1", "fifo", throughputs=table(), prices=prices)
    assert run.summary["cost"] == pytest.approx(2.5 + 0.5)
    with pytest.raises(UsageError, match="no price for device type 'k80'"):
        simulate(jobs, "v100:1,k80:1", "fifo", throughputs=table(), prices={"v100": 1.0})
