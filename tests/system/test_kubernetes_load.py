"""A large cluster: a thousand nodes and ten thousand pods of others beside the jobs of a service, counted by the API server itself."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.runtime.specs import ENDED
from tests.system.kubernetes import KubernetesCluster, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_service import Service

from gantline.runtime.kubernetes.objects import path_of

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(3_600)]
_MEGABYTES = 300.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path / "kubernetes") as found:
        found.start_kubelets([node("a", cpus=2), node("b", cpus=2)])
        yield found


def crowd(cluster: KubernetesCluster, nodes: int, pods: int) -> None:
    """Nodes that no kubelet is behind, and pods of others that use all of them."""

    def make_node(number: int) -> None:
        name, room = f"far-{number:04}", {"cpu": "8", "memory": "256Gi", "pods": "110"}
        cluster.client.create(path_of("nodes"), {"metadata": {"name": name, "labels": {"rack": str(number // 20)}}})
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        cluster.client.merge(f"{path_of('nodes', name=name)}/status", {"status": status})

    with ThreadPoolExecutor(8) as several:
        list(several.map(make_node, range(nodes)))
        list(several.map(lambda number: cluster.pod(f"other-{number}", f"far-{number % nodes:04}"), range(pods)))


def requests(cluster: KubernetesCluster) -> Counter[str]:
    """What the API server has been asked about nodes, pods and services, by verb."""
    found: Counter[str] = Counter()
    for line in cluster.client.read("/metrics").decode().splitlines():
        if line.startswith("apiserver_request_total{") and (kind := re.search(r'resource="(nodes|pods|services)"', line)):
            verb = re.search(r'verb="(\w+)"', line)
            assert verb is not None
            found[f"{verb[1]} {kind[1]}"] += int(float(line.rsplit(" ", 1)[1]))
    return found


def test_a_large_cluster_is_listed_once(cluster: KubernetesCluster, tmp_path: Path, long: bool) -> None:
    nodes, pods = (1_000, 10_000) if long else (60, 600)
    crowd(cluster, nodes, pods)
    service, chance = Service(tmp_path, cluster, policy="fifo"), random.Random(3)
    service.start()
    before = requests(cluster)
    known = [service.submit(chance, "1") for _ in range(12)]
    for number in range(50):  # what others do meanwhile
        cluster.client.delete(path_of("pods", "default", f"other-{number}"), 0)
    jobs = wait_for(
        lambda: (found := service.client.jobs()) and all(job["state"] in ENDED for job in found) and found, "end of all jobs", 300
    )
    made = requests(cluster) - before
    wait_for(lambda: not [pod for pod in cluster.pods() if pod["metadata"]["name"].startswith("gantline-")], "removal of our pods")
    memory = service.peak_megabytes()
    service.client.shutdown(drain=True)
    service.process.wait(60)
    assert {job["id"]: job["state"] for job in jobs} == dict.fromkeys(known, "succeeded")
    print(f"{nodes} nodes, {pods} pods: {dict(made)}; the service took {service.starts[0][1]:.1f} CPU s to start, {memory:.0f} MB at most")
    assert made["LIST nodes"] == made["LIST pods"] == 0
    assert made["POST pods"] == len(known)  # bindings; the pods themselves are applied
    assert memory < _MEGABYTES
