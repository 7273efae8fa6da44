"""A service in a Slurm allocation is killed at random instants: no job is lost, none runs twice, and the record can be replayed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.cluster_lives import Lives
from tests.system.slurm import allocated, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("jobs", "kills"), [(8, 3), pytest.param(30, 30, marks=pytest.mark.long)])
def test_jobs_outlive_services_that_are_killed(tmp_path: Path, jobs: int, kills: int) -> None:
    with allocated(tmp_path / "slurm", "--cpus-per-task=2") as allocation:
        env = {name: allocation.cluster.env[name] for name in ("SLURM_CONF", "PATH")}
        lives = Lives(tmp_path, "slurm", {"slurm-job": allocation.job}, seed=23, env=env)
        lives.run(jobs, kills)
        lives.check()
    taken = sorted(lives.adopted)
    print(f"{kills} kills, {len(lives.known)} jobs; adopted after {taken[len(taken) // 2]:.1f} s, at most {taken[-1]:.1f} s")
