"""Nodes of a Ray cluster are lost and come back, and its control store is away for a while: jobs go on, and none runs twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.specs import ended, must_succeed, shell, state, until, until_running
from tests.system.ray_cluster import RayCluster

from gantline.core.inputs import Action
from gantline.live.runners.ray.runner import RayRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore
from gantline.live.store.records import MemoryStore


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(3)
    yield cluster
    cluster.stop()


@pytest.fixture
def scheduler(tmp_path: Path, ray_cluster: RayCluster) -> Iterator[Scheduler]:
    scheduler = Scheduler(MemoryStore(), RayRunner(tmp_path, "cpu", address=ray_cluster.address), "fifo")
    scheduler.start()
    yield scheduler
    end(scheduler)


def end(scheduler: Scheduler) -> None:
    """No job of a test outlives it."""
    try:
        for job in scheduler.view().jobs.values():
            if job.state in ("running", "pending"):
                scheduler.request([job.id], Action.CANCEL)
        ended(scheduler, *scheduler.view().jobs)
    finally:
        scheduler.stop()


def careful(home: Path) -> str:
    """A rank that notices when another process is on its device, and goes on until it is told to finish."""
    mine = f"{home}/on.$GANTLINE_DEVICES.$RANK"
    return (
        f"trap 'rmdir {mine}; exit 15' TERM; mkdir {mine} || echo $GANTLINE_JOB_ID >> {home}/breaches;"
        f" echo $GANTLINE_EPOCH >> {home}/began.$GANTLINE_JOB_ID.$RANK;"
        f" while [ ! -e {home}/finish ]; do sleep 0.1; done; rmdir {mine}"
    )


def nodes_of(scheduler: Scheduler, job: str) -> set[str]:
    return {name.partition(":")[0] for name in scheduler.view().jobs[job].devices}


def is_up(scheduler: Scheduler, node: str) -> bool:
    return all(device.up for device in scheduler.view().devices if device.node == node)


def test_a_gang_on_a_lost_node_goes_on_elsewhere(tmp_path: Path, ray_cluster: RayCluster, scheduler: Scheduler) -> None:
    """And the node comes back under its name."""
    waits = f"while [ ! -e {tmp_path}/finish ]; do sleep 0.1; done"
    gang, other = (scheduler.submit(shell(waits, gpus, processes=0), "ann")[0] for gpus in (3, 1))
    until_running(scheduler, gang, other)
    lost = max(nodes_of(scheduler, gang) - nodes_of(scheduler, other))
    ray_cluster.lose(lost)
    until(lambda: not is_up(scheduler, lost), "the loss of a node")
    until(lambda: state(scheduler, gang) == "running" and lost not in nodes_of(scheduler, gang), "a start elsewhere")
    assert scheduler.view().jobs[gang].failures == 0, "it is no failure of the job"
    ray_cluster.add(lost)
    until(lambda: is_up(scheduler, lost), "the return of a node")
    (again,) = scheduler.submit(shell("true", 2), "ann")
    (tmp_path / "finish").touch()
    must_succeed(scheduler, gang, other, again)


@pytest.mark.parametrize("away", [8.0, pytest.param(60.0, marks=pytest.mark.long)])  # seconds
def test_jobs_go_on_while_the_control_store_is_away(tmp_path: Path, ray_cluster: RayCluster, scheduler: Scheduler, away: float) -> None:
    running = [scheduler.submit(shell(careful(tmp_path), gpus, processes=0), "ann")[0] for gpus in (1, 3)]
    short = scheduler.submit(shell(f"while [ ! -e {tmp_path}/away ]; do sleep 0.1; done; echo done > {tmp_path}/short"), "ann")[0]
    until_running(scheduler, *running, short)
    with ray_cluster.without_store():
        (tmp_path / "away").touch()
        (late,) = scheduler.submit(shell("true"), "ann")
        time.sleep(away)
        until((tmp_path / "short").exists, "the end of a job that needs no control store")
        assert [state(scheduler, job) for job in running] == ["running", "running"]
    back = time.monotonic()
    must_succeed(scheduler, short, late)
    print(f"away for {away:g} s; caught up after {time.monotonic() - back:.1f} s")
    (tmp_path / "finish").touch()
    must_succeed(scheduler, *running)
    assert not (tmp_path / "breaches").exists()
    assert {file.read_text() for file in tmp_path.glob("began.*")} == {"1\n"}, "something was started twice"


def test_a_service_that_ends_while_the_control_store_is_away_leaves_its_jobs_to_the_next(tmp_path: Path, ray_cluster: RayCluster) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    first = Scheduler(store, RayRunner(tmp_path, "cpu", address=ray_cluster.address), "fifo")
    first.start()
    (running,) = first.submit(shell(careful(tmp_path), 3, processes=0), "ann")
    until_running(first, running)
    with ray_cluster.without_store():
        (waiting,) = first.submit(shell("true"), "ann")
        first.stop()
    second = Scheduler(store, RayRunner(tmp_path, "cpu", address=ray_cluster.address), "fifo")
    second.start()
    try:
        must_succeed(second, waiting)
        assert state(second, running) == "running"
        (tmp_path / "finish").touch()
        must_succeed(second, running)
        assert {file.read_text() for file in tmp_path.glob("began.*")} == {"1\n"}, "something was started twice"
    finally:
        end(second)
        store.close()
