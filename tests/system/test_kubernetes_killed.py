"""A service on Kubernetes that is killed at random instants: no job is lost, none runs twice, no saved step is made again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.lives import check_promises, told
from tests.live.specs import ENDED
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_service import Service

from gantline.core.errors import GantlineError

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
JOBS = 30
NODES = [node(f"n{number}", cpus=2) for number in range(6)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path / "kubernetes") as found:
        found.start_kubelets(NODES)
        yield found
        empty(found)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.long)])
def test_killed_at_random_instants(cluster: KubernetesCluster, tmp_path: Path, kills: int) -> None:
    chance = random.Random(23)
    service = Service(tmp_path, cluster)
    service.start()
    known: list[str] = []
    for number in range(kills):
        while len(known) < min(JOBS, JOBS * (number + 1) * 5 // kills):  # more than there is room for: some stop for others
            known.append(service.submit(chance, longer=kills // 5))  # until the last kill there are jobs
        time.sleep(chance.uniform(0.0, 3.0))
        service.kill()
        service.start()

    def all_over() -> bool:
        try:
            return all(job["state"] in ENDED and not job["devices"] for job in service.client.jobs())
        except GantlineError:
            return False

    left = sum(job["state"] not in ENDED for job in service.client.jobs())
    wait_for(all_over, "end of all jobs", 1_200)
    wait_for(lambda: not cluster.pods(), "removal of all pods")
    service.client.shutdown(drain=True)
    service.process.wait(60)

    jobs = check_promises(tmp_path, service.home.store, (tmp_path / "saved").glob("*/steps"))
    assert {id: jobs[id]["state"] for id in known} == dict.fromkeys(known, "succeeded")
    starts = sorted(service.starts)
    (middle, _), (slowest, cpu) = starts[len(starts) // 2], starts[-1]
    print(f"{kills} kills, {len(told(tmp_path, 'began'))} incarnations of {JOBS} jobs, {left} of which were there after the last kill")
    print(f"the service answers and has adopted its gangs after {middle:.1f} s, at most {slowest:.1f} s ({cpu:.1f} CPU s)")
