"""GPUs of a Ray cluster, which Ray picks within a node: jobs see those that they are told of, and reports name them.

Nodes declare GPUs that no machine has: what is asked here is which of them a process is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.specs import contact_of, must_succeed, until, until_running
from tests.live.test_change_of_ranks import POLICY, gang, lines, resize, sizes
from tests.system.ray_cluster import RayCluster
from tests.system.test_ray_contract import end_all

from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.ray.runner import RayRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2, gpus=3)
    yield cluster
    cluster.stop()


def test_reports_name_the_gpus_that_ranks_really_have(tmp_path: Path, ray_cluster: RayCluster) -> None:
    runner, told = RayRunner(tmp_path, address=ray_cluster.address), list[Report]()
    assert [(node.name, node.type, node.gpus) for node in runner.cluster.nodes] == [("n1", "gpu", 3), ("n2", "gpu", 3)]
    runner.adopt()
    line = f"echo $CUDA_VISIBLE_DEVICES > {tmp_path}/draft.$RANK; mv {tmp_path}/draft.$RANK {tmp_path}/cuda.$RANK; sleep 1000"
    launch = Launch((line,), shell=True, processes=0, grace=5.0)
    runner.attach(contact_of(runner, lambda row: launch, lambda events: told.extend(report for report, _ in events.reports)))
    try:
        runner.send(Order(Verb.START, 0, 1, (1, 2, 4)), 0.0)
        report = until(lambda: next((one for one in told if one.news is News.STARTED), None))
        until(lambda: all((tmp_path / f"cuda.{rank}").exists() for rank in range(3)))
        first, _, second = ((tmp_path / f"cuda.{rank}").read_text().strip() for rank in range(3))
        assert report.actual == (*(f"n1:{name}" for name in first.split(",")), f"n2:{second}")
        assert len(set(report.actual)) == 3
    finally:
        end_all(runner)


def test_ranks_that_join_have_gpus_of_their_own(tmp_path: Path, ray_cluster: RayCluster) -> None:
    """A rank keeps its GPU; those that join see it first, as their rank says, and then their own."""
    scheduler, seen = Scheduler(MemoryStore(), RayRunner(tmp_path, address=ray_cluster.address), POLICY), tmp_path / "seen"
    scheduler.start()
    try:
        (job,) = scheduler.submit(gang(seen, 1, epochs=40, setup=f"echo $RANK $CUDA_VISIBLE_DEVICES >> {tmp_path}/cuda;"))
        until(lambda: lines(seen), "the first step")
        resize(scheduler, job, 3)
        until(lambda: 3 in sizes(seen), "three ranks")
        until_running(scheduler, job)
        must_succeed(scheduler, job)
    finally:
        scheduler.stop()
    found = dict(line.split() for line in (tmp_path / "cuda").read_text().splitlines())
    first, *others = found["1"].split(",")
    assert (found["0"], found["2"]) == (first, found["1"])
    assert len({first, *others}) == 3
    assert len({line.pid for line in lines(seen)}) == 3, "no rank was started again"
