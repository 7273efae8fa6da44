"""The contract about gangs on a real Ray cluster: two nodes with devices, one of which is lost, and a control store that is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.system.ray_cluster import RayCluster
from tests.system.test_ray_contract import end_all

from gantline.conformance.gang_bench import GangBench
from gantline.conformance.gangs import GangContract
from gantline.runtime.ray.runner import RayRunner


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2)
    yield cluster
    cluster.stop()


class GangsOnRay(GangBench):
    across = (0, 2)

    def __init__(self, home: Path, cluster: RayCluster) -> None:
        self.home, self.cluster = home, cluster
        (home / "board").mkdir()
        super().__init__(home / "board")

    def open(self) -> RayRunner:
        return RayRunner(self.home, "cpu", address=self.cluster.address)

    def lose(self, name: str) -> None:  # type: ignore[override]
        self.cluster.lose(name)

    def away(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return self.cluster.without_store()


class TestGangsOnRay(GangContract):
    seconds = 120.0

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, ray_cluster: RayCluster) -> Iterator[None]:
        self.home, self.cluster = tmp_path, ray_cluster
        yield
        assert isinstance(self.made.runner, RayRunner)
        end_all(self.made.runner)
        ray_cluster.restore()

    def bench(self) -> GangsOnRay:
        return GangsOnRay(self.home, self.cluster)
