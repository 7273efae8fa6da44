"""Queue and use over time: shared devices count once, requests count as asked, nodes count while they are there."""

from __future__ import annotations

from tests.jobs import by_job, job_row
from tests.probes.scenario import IN_ONE_GROUP, every

from gantline.core.cluster import Node
from gantline.core.inputs import NodeEvent
from gantline.lab.report.frames import node_gpus_of
from gantline.lab.report.metrics import measure
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate


def steps(run: Run, *columns: str) -> list[tuple[float, ...]]:
    return run.series.select("time", *columns).rows()


def test_a_device_with_two_holders_is_busy_once() -> None:
    run = simulate([job_row("a", 1, 60), job_row("b", 1, 20, at=20)], "1x4", IN_ONE_GROUP)
    finish = by_job(run, "finish")
    assert steps(run, "running", "busy_gpus") == [(0, 1, 1), (20, 2, 1), (finish["b"], 1, 1), (finish["a"], 0, 0)]
    assert measure(run)["utilization"] == run.summary["utilization"] == 0.25


def test_a_gang_that_runs_smaller_leaves_no_request_behind() -> None:
    jobs = [job_row("a", 4, 60, min_gpus=1, max_gpus=4), job_row("b", 2, 60, min_gpus=1, max_gpus=2)]
    run = simulate(jobs, "1x4", every(gpus=1))
    assert steps(run, "queued_gpus", "busy_gpus")[0] == (0, 0, 2)
    assert steps(run, "queued", "queued_gpus", "busy_gpus")[-1][1:] == (0, 0, 0)


def test_nodes_count_from_the_moment_they_join() -> None:
    events = [NodeEvent(50, "late", "join", Node("late", "gpu", 4))]
    run = simulate([job_row("a", 2), job_row("b", 4)], "1x4", "fifo", node_events=events)
    assert steps(run, "busy_gpus", "total_gpus") == [(0, 2, 4), (50, 6, 8), (100, 4, 8), (150, 0, 8)]
    assert run.summary["node_gpus"] == "2x4"
    assert node_gpus_of(run) == [4, 4]
    assert measure(run)["utilization"] == run.summary["utilization"] == 600 / (4 * 50 + 8 * 100)


def test_a_failure_is_a_step_of_its_own() -> None:
    events = [NodeEvent(30, "node1", "down"), NodeEvent(70, "node1", "up")]
    run = simulate([job_row("a")], "2x1", "fifo", node_events=events)
    assert steps(run, "busy_gpus", "down_gpus") == [(0, 1, 0), (30, 1, 1), (70, 1, 0), (100, 0, 0)]


def test_what_had_not_arrived_is_neither_waiting_nor_in_the_queue() -> None:
    run = simulate([job_row("a"), job_row("b", 4, at=10), job_row("c", 1, 5, at=900)], "1x4", "fifo", until=50)
    assert run.jobs["state"].to_list() == ["running", "waiting", "future"]
    assert steps(run, "queued", "running")[-1][:2] == (50, 1)
    assert "c" not in run.events["job"]
    assert (measure(run)["jobs"], measure(run)["unfinished"]) == (3, 3)  # it is told as a job all the same, one that did not end


def test_an_allocation_of_cpus_alone_names_its_node_and_no_device() -> None:
    jobs = [job_row(f"j{k}", at=5.0 * k, options="gpu:1=100|cpu:0/20=120") for k in range(6)]
    held = simulate(jobs, "gpu:2x1/0c/64g,cpu:2x0/32c/64g", "allox").allocations
    alone = held.filter(held["gpus"] == 0)
    assert set(alone["type"]) == {"cpu"}
    assert all(len(nodes) == 1 for nodes in alone["nodes"])
    assert all(len(devices) == 0 for devices in alone["devices"])
    assert held.filter(held["gpus"] == 1)["devices"].list.len().to_list() == [1] * (len(held) - len(alone))


def test_a_run_in_which_nothing_starts_has_no_allocations() -> None:
    run = simulate([job_row("a", 1, 5, at=100)], "1x4", "fifo", until=50)
    assert run.allocations.is_empty()
    assert run.events.is_empty()
