"""The contracts of executors and runners on a real Ray cluster of three nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.live.folder_bench import FolderBench, FolderExecutor
from tests.system.ray_cluster import RayCluster

from gantline.lab.conformance.executor import Bench, ExecutorContract
from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.lab.conformance.runner import RunnerContract
from gantline.live.runners.ray.runner import RayRunner


class OnRay:
    """A home, and no keeper left of it. Devices 0 and 1 are on one node, 2 and 3 on the other."""

    patience = 200.0  # how long processes take to start is the machine's affair
    kind: type[FolderExecutor[RayRunner]] | type[FolderBench[RayRunner]]

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, ray_cluster: RayCluster) -> Iterator[None]:
        self.home, self.address = tmp_path, ray_cluster.address
        yield
        end_all(self.made.executor)

    def bench(self) -> Bench:
        self.made = self.kind(self.home, lambda home: RayRunner(home, "cpu", address=self.address))
        return self.made  # type: ignore[return-value]


def end_all(runner: RayRunner) -> None:
    """No keeper of a test outlives it, and its cluster is free for the next service."""
    for one in runner.known.alive():
        one.write_order(want="stop", grace=0.0)
    end = time.monotonic() + 60.0
    while runner.known.alive() and time.monotonic() < end:
        time.sleep(0.05)
    runner.leave(drained=False)
    runner.close()


class TestExecutorOnRay(OnRay, ExecutorContract):
    kind = FolderExecutor


class TestRunnerOnRay(OnRay, RunnerContract):
    kind = FolderBench


# The contract about gangs on a real Ray cluster of two nodes with devices.


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
