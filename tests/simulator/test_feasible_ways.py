"""Ways to run that cannot be had: one rule before the run, the same under every policy."""

from __future__ import annotations

import pytest
from tests.jobs import job_row as job

from gantline import simulate
from gantline.core.errors import TraceError

POLICIES = ["fifo", "srtf", "afs", "elasticflow", "equal-share", "optimus", "allox", "drf", "themis", "gavel.max_min_fairness", "gandiva"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_way_that_no_node_can_hold_is_left_out(policy: str) -> None:
    """Two GPUs are there in all: eight are not, whoever chooses, and whether it asks for them or not."""
    jobs = [job("asks for it", 8, options="gpu:8=30|gpu:2=100"), job("could have it", 2, options="gpu:2=100|gpu:8=30")]
    run = simulate(jobs, "1x2", policy, round=60, until=5000)
    assert run.jobs["state"].to_list() == ["completed", "completed"]
    assert run.summary["left_out_options"] == 2
    assert run.jobs["gpus"].to_list() == [2, 2]


@pytest.mark.parametrize("policy", ["fifo", "allox", "gavel.max_min_fairness", "optimus"])
def test_a_gang_larger_than_all_of_a_type_runs_on_the_other(policy: str) -> None:
    run = simulate([job("a", 4)], "big:1x4,small:1x2", policy, round=60, until=5000)
    assert run.allocations["type"].unique().to_list() == ["big"]
    assert run.summary["completed"] == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_a_size_that_is_not_among_the_options_becomes_that_of_the_first(policy: str) -> None:
    run = simulate([job("a", 4, options="gpu:2=100|gpu:1=180")], "1x4", policy, round=60)
    assert run.summary["completed"] == 1


def test_cpus_beside_every_device_are_counted_over_all_nodes() -> None:
    """Three of the four GPUs have four cores each: a gang of four can never run, one of three can."""
    cluster = "gpu:2x2/6c"
    assert simulate([job("a", 2, cpus=8.0)], cluster, "fifo").summary["completed"] == 1
    with pytest.raises(TraceError, match=r"can never run.*no node has the CPUs"):
        simulate([job("a", 4, cpus=16.0)], cluster, "fifo")


@pytest.mark.parametrize("ideal", [False, True])
@pytest.mark.parametrize("policy", ["gavel.max_min_fairness", "gavel.fifo", "gavel.finish_time_fairness", "gavel.allox"])
def test_a_job_on_cpus_alone_stops_nobody_under_gavel(policy: str, ideal: bool) -> None:
    jobs = [
        job("cpu", 0, options="cpu:0/4=100"),
        job("gpu", options="gpu:1=100"),
        job("either", 0, options="cpu:0/4=100|gpu:1=50"),
    ]
    run = simulate(jobs, "gpu:1x2,cpu:1x0/8c", policy, round=60, settings={"ideal": ideal} if ideal else {}, until=5000)
    assert run.summary["completed"] == 3
    assert not run.incidents
