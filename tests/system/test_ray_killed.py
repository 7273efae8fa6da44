"""A service on a Ray cluster of six nodes is killed at random instants: no job is lost, none runs twice, and the record can be replayed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.cluster_lives import Lives
from tests.system.ray_cluster import RayCluster

CLUSTER = {"nodes": 6}


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("jobs", "kills"), [(10, 5), pytest.param(30, 50, marks=pytest.mark.long)])
def test_jobs_outlive_services_that_are_killed(tmp_path: Path, ray_cluster: RayCluster, jobs: int, kills: int) -> None:
    lives = Lives(tmp_path, "ray", {"ray-address": ray_cluster.address}, seed=23)
    lives.run(jobs, kills)
    lives.check()
    taken = sorted(lives.adopted)
    print(f"{kills} kills, {len(lives.known)} jobs; adopted after {taken[len(taken) // 2]:.1f} s, at most {taken[-1]:.1f} s")
