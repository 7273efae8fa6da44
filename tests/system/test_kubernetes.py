"""The contracts of executors and runners on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node
from tests.system.kubernetes_bench import KubernetesBench

from gantline.conformance.executor import ExecutorContract
from gantline.conformance.runner import RunnerContract

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


class TestExecutor(OnKubernetes, ExecutorContract):
    patience = 60.0


class TestRunner(OnKubernetes, RunnerContract):
    pass
