"""The contract about gangs on a real API server of two nodes, one of which can be lost; the server can be away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for

from gantline.conformance.gang_bench import GangBench
from gantline.conformance.gangs import GangContract
from gantline.runtime.kubernetes.runner import KubernetesRunner
from gantline.runtime.premises import Premises

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a", cpus=2), node("b", cpus=2)])
        yield found


class KubernetesGangs(GangBench):
    """Devices 0 and 1 are node a's, 2 and 3 node b's."""

    across = (0, 2)

    def __init__(self, cluster: KubernetesCluster, home: Path) -> None:
        self.cluster, self.home = cluster, home
        (home / "board").mkdir()
        super().__init__(home / "board")

    def open(self) -> KubernetesRunner:
        own = {"kubeconfig": str(self.cluster.kubeconfig), "image": "any", "checkpoints": str(self.home / "checkpoints")}
        return KubernetesRunner.open(Premises(self.home, "cpu", own, "http://127.0.0.1:1"))

    def lose(self, name: str) -> None:
        self.cluster.tell_kubelets(f"kill {name}")

    @contextmanager
    def away(self) -> Iterator[None]:
        self.cluster.stop_server()
        try:
            yield
        finally:
            self.cluster.start_server()


class TestGangsOnKubernetes(GangContract):
    seconds = 120.0

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, cluster: KubernetesCluster) -> Iterator[None]:
        self.home, self.cluster = tmp_path, cluster
        yield
        self.made.runner.close()
        for name in "ab":
            cluster.tell_kubelets(f"back {name}")
        wait_for(lambda: sorted(cluster.ready()) == ["a", "b"], "ready nodes")
        empty(cluster)

    def bench(self) -> KubernetesGangs:
        return KubernetesGangs(self.cluster, self.home)
