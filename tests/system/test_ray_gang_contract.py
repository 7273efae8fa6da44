"""The contract about gangs on a real Ray cluster of two nodes with devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.system.ray_cluster import RayCluster
from tests.system.test_ray_contract import end_all

from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.live.runners.ray.runner import RayRunner


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2)
    yield cluster
    cluster.stop()


class RayGangs(GangBench):
    """Devices 0 and 1 are on node n1, 2 and 3 on n2; a node that was lost joins again behind them."""

    across = (0, 2)
    runner: RayRunner

    def __init__(self, cluster: RayCluster, home: Path) -> None:
        self.cluster, self.home, self.lost = cluster, home, list[str]()
        (home / "board").mkdir()
        super().__init__(home / "board")

    def open(self) -> RayRunner:
        return RayRunner(self.home, "cpu", address=self.cluster.address)

    def lose(self, name: str) -> None:
        self.lost.append(name)
        self.cluster.lose(name)

    def away(self) -> AbstractContextManager[None]:
        return self.cluster.without_store()


class TestGangsOnRay(GangContract):
    seconds = 200.0

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, ray_cluster: RayCluster) -> Iterator[None]:
        self.home, self.cluster = tmp_path, ray_cluster
        yield
        end_all(self.made.runner)
        for name in self.made.lost:
            ray_cluster.add(name)

    def bench(self) -> RayGangs:
        return RayGangs(self.cluster, self.home)

    made: RayGangs
