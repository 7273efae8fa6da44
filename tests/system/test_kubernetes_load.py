"""A large cluster: a thousand nodes and ten thousand pods of others beside the jobs of a service, counted by the API server itself.

The service reaches the server through a proxy that can delay or hold back its answers: decisions wait for none of them.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.live.specs import ENDED
from tests.system.kubernetes import KubernetesCluster, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_service import Service
from tests.system.slow_proxy import SlowProxy

from gantline.live.runners.kubernetes.access import path_of

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(3_600)]
_MEGABYTES = 300.0
_DELAY = 2.0  # seconds by which answers of a slow server come late
_AT_ONCE = 8  # jobs for which the nodes have room


@pytest.fixture(scope="module", params=[(60, 600), pytest.param((1_000, 10_000), marks=pytest.mark.long)], ids=["small", "large"])
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    """Nodes and pods of others."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, size: tuple[int, int]) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a", cpus=_AT_ONCE // 2), node("b", cpus=_AT_ONCE // 2)])
        crowd(found, *size)
        yield found


@pytest.fixture
def proxy(cluster: KubernetesCluster) -> Iterator[SlowProxy]:
    found = SlowProxy(cluster.ports[1])
    yield found
    found.close()


@pytest.fixture
def service(cluster: KubernetesCluster, proxy: SlowProxy, tmp_path: Path) -> Iterator[Service]:
    found = Service(tmp_path, cluster, policy="fifo", kubeconfig=cluster.kubeconfig_of("admin", port=proxy.port))
    found.start()
    yield found
    proxy.release()
    found.client.shutdown(drain=True)
    found.process.wait(60)


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
            found[f"{verb[1]} {kind[1]}"] += int(float(line.rsplit(" ", 1)[1]))
    return found


def served(service: Service, jobs: list[str]) -> list[dict[str, object]]:
    """Wait until jobs have devices."""

    def found() -> list[dict[str, object]]:
        known = [service.client.job(one) for one in jobs]
        return known if all(one["devices"] for one in known) else []

    shown: list[dict[str, object]] = wait_for(found, "devices for all of them")
    return shown


def decided(service: Service) -> list[float]:
    """Milliseconds from the request of a user until the job is shown with devices, for as many as there is room for; they end then."""
    jobs, waits = list[str](), list[float]()
    for _ in range(_AT_ONCE):
        began = time.monotonic()
        jobs += service.client.submit(["/bin/sh", "-c", "sleep 1000"], resources={"gpus": 1})
        while not service.client.job(jobs[-1])["devices"]:
            time.sleep(0.001)
        waits.append(1000.0 * (time.monotonic() - began))
    wait_for(lambda: all(service.client.job(one)["state"] == "running" for one in jobs), "all of them", 300)
    service.client.cancel(*jobs)
    return waits


def decisions(service: Service) -> int:
    """How many it has made."""
    lines = service.client.metrics().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.startswith("gantline_resched_total"))


def free(service: Service) -> None:
    """Wait until every device is free."""
    wait_for(lambda: not any(job["devices"] for job in service.client.jobs()), "free devices", 300)


def test_a_large_cluster_is_listed_once_and_a_change_is_one_write(
    cluster: KubernetesCluster, service: Service, size: tuple[int, int]
) -> None:
    chance, before = random.Random(3), requests(cluster)
    known = [service.submit(chance, "1") for _ in range(12)]
    for number in range(50):  # what others do meanwhile
        cluster.client.delete(path_of("pods", "default", f"other-{number}"), 0)
    jobs = wait_for(
        lambda: (found := service.client.jobs()) and all(job["state"] in ENDED for job in found) and found, "end of all jobs", 300
    )
    made = requests(cluster) - before
    wait_for(lambda: not [pod for pod in cluster.pods() if pod["metadata"]["name"].startswith("gantline-")], "removal of our pods")
    memory, (_, cpu) = service.peak_megabytes(), service.starts[0]
    assert {job["id"]: job["state"] for job in jobs} == dict.fromkeys(known, "succeeded")
    print(f"{size[0]} nodes, {size[1]} pods: {dict(made)}; the service took {cpu:.1f} CPU s to start, {memory:.0f} MB at most")
    assert made["LIST nodes"] == made["LIST pods"] == 0
    assert made["POST pods"] == len(known)  # bindings; the pods themselves are applied
    assert memory < _MEGABYTES


def test_decisions_wait_for_no_answer_of_the_server(service: Service, proxy: SlowProxy, size: tuple[int, int]) -> None:
    decided(service)  # the first ones compile something
    free(service)
    quick = decided(service)
    free(service)
    proxy.delay = _DELAY
    slow = decided(service)
    free(service)  # which takes several answers
    proxy.delay = 0.0
    proxy.hold()
    count = decisions(service)
    jobs = [service.client.submit(["/bin/sh", "-c", "sleep 1000"], resources={"gpus": 1})[0] for _ in range(2 * _AT_ONCE)]
    first, later = jobs[:_AT_ONCE], jobs[_AT_ONCE:]
    held = served(service, first)
    made = decisions(service) - count
    assert {one["state"] for one in held} == {"starting"}  # nothing that they caused has been answered
    assert {service.client.job(one)["state"] for one in later} == {"pending"}
    assert made >= 1
    proxy.release()
    wait_for(lambda: all(service.client.job(one)["state"] == "running" for one in first), "all that were decided", 300)
    service.client.cancel(*first)
    wait_for(lambda: all(service.client.job(one)["state"] == "running" for one in later), "those that waited", 300)
    for name, waits in {"at once": quick, f"{_DELAY:g} s late": slow}.items():
        print(f"{size[0]} nodes, answers {name}: devices {statistics.median(waits):.0f} ms after the request, at most {max(waits):.0f} ms")
    print(f"{made} decisions for {len(jobs)} jobs while no answer came")
