"""One scheduler, two clocks, many machines: policies serve a gang over two nodes of a Ray cluster, and the record can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.conformance.test_every_policy import BRIEF, NOT_LIVE, POLICIES
from tests.live.specs import ended, replays, submit
from tests.system.ray_cluster import RayCluster

from gantline.live.runners.ray.runner import RayRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore

LIVE = [name for name in POLICIES if name not in NOT_LIVE]


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2)
    yield cluster
    cluster.stop()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("policies", [LIVE[::8], pytest.param(LIVE, marks=pytest.mark.long)], ids=["some", "all"])
def test_policies_serve_a_gang_over_two_nodes_and_decide_the_same_again(
    tmp_path: Path, ray_cluster: RayCluster, policies: list[str]
) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    scheduler = Scheduler(store, RayRunner(tmp_path, "cpu", address=ray_cluster.address), "fifo")
    scheduler.start()
    try:
        for policy in policies:
            scheduler.use(policy, BRIEF.get(policy, {}))
            job = submit(scheduler, f"echo $NNODES > {tmp_path}/nodes.$GANTLINE_JOB_ID", gpus=3, estimate=60.0, processes=0)
            assert ended(scheduler, job) == ["succeeded"], policy
            assert (tmp_path / f"nodes.{job}").read_text() == "2\n", policy
    finally:
        scheduler.stop()
    replayed = replays(store)
    store.close()
    assert replayed.decisions > 0
    print(f"{replayed.decisions} decisions, replayed without a difference")
