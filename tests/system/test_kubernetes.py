"""The contracts of executors and runners on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_bench import KubernetesBench, context

from gantline.lab.conformance.executor import ExecutorContract
from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.lab.conformance.runner import RunnerContract
from gantline.live.runners.kubernetes.runner import KubernetesRunner

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


class KubernetesGangs(GangBench):
    across = (0, 2)

    def __init__(self, cluster: KubernetesCluster, home: Path) -> None:
        self.cluster, self.home = cluster, home
        board = home / "board"
        board.mkdir()
        self.lose = lambda name: cluster.tell_kubelets(f"kill {name}")
        self.away = self._away
        super().__init__(board)

    def open(self) -> KubernetesRunner:
        return KubernetesRunner.open(context(self.cluster, self.home))

    @contextmanager
    def _away(self) -> Iterator[None]:
        self.cluster.stop_server()
        yield
        self.cluster.start_server()


class TestGangs(GangContract):
    seconds = 120.0

    @pytest.fixture(autouse=True)
    def _place(self, cluster: KubernetesCluster, tmp_path: Path) -> Iterator[None]:
        self.cluster, self.home = cluster, tmp_path
        yield
        self.made.runner.close()
        for name in ("a", "b"):
            cluster.tell_kubelets(f"back {name}")
        wait_for(lambda: len(cluster.ready()) == 2, "both nodes")
        empty(cluster)

    def bench(self) -> KubernetesGangs:
        return KubernetesGangs(self.cluster, self.home)


class TestExecutor(OnKubernetes, ExecutorContract):
    patience = 60.0


class TestRunner(OnKubernetes, RunnerContract):
    pass
