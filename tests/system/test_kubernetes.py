"""The contracts of executors and runners on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.system.kubernetes import KubernetesCluster, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_bench import KubernetesBench

from gantline.conformance.executor import ExecutorContract
from gantline.conformance.runner import RunnerContract
from gantline.runtime.kubernetes.client import ApiError
from gantline.runtime.kubernetes.objects import path_of

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a", cpus=2), node("b", cpus=2)])
        yield found


class OnKubernetes:
    """A home of its own for each test, and no pod left."""

    @pytest.fixture(autouse=True)
    def _place(self, cluster: KubernetesCluster, tmp_path: Path) -> Iterator[None]:
        self.cluster, self.home = cluster, tmp_path
        yield
        self.made.close()
        empty(cluster)

    def bench(self) -> KubernetesBench:
        self.made = KubernetesBench(self.cluster, self.home)
        return self.made


def empty(cluster: KubernetesCluster) -> None:
    """Remove all pods and the lease, as an operator would."""
    for pod in cluster.pods():
        path = path_of("pods", "default", pod["metadata"]["name"])
        _unless_gone(partial(cluster.client.merge, path, {"metadata": {"finalizers": None}}))
        _unless_gone(partial(cluster.client.delete, path, 1))
    wait_for(lambda: not cluster.pods(), "end of all pods")
    _unless_gone(partial(cluster.client.delete, path_of("leases", "default", "gantline", "coordination.k8s.io/v1")))


def _unless_gone(act: Callable[[], object]) -> None:
    try:
        act()
    except ApiError as error:
        if error.code != 404:
            raise


class TestExecutor(OnKubernetes, ExecutorContract):
    patience = 1_200


class TestRunner(OnKubernetes, RunnerContract):
    pass
