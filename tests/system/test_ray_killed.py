"""A service on a Ray cluster of six nodes is killed at random instants: no job is lost, none runs twice, and the record can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cluster_lives import Lives
from tests.system.ray_cluster import RayCluster

NODES = 6
KILLS = {False: 5, True: 50}
JOBS = {False: 10, True: 30}


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(NODES)
    yield cluster
    cluster.stop()


@pytest.mark.timeout(3000)
def test_jobs_outlive_services_that_are_killed(tmp_path: Path, ray_cluster: RayCluster, long: bool) -> None:
    lives = Lives(tmp_path, "ray", {"ray-address": ray_cluster.address}, seed=23)
    lives.run(JOBS[long], KILLS[long])
    lives.check()
    taken = sorted(lives.adopted)
    print(f"{KILLS[long]} kills, {len(lives.known)} jobs; adopted after {taken[len(taken) // 2]:.1f} s, at most {taken[-1]:.1f} s")
