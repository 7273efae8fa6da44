"""The contracts of executors and runners in an allocation of a real Slurm cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.live.folder_bench import FolderBench, FolderExecutor
from tests.system.slurm import Allocated, allocated, missing

from gantline.lab.conformance.executor import Bench, ExecutorContract
from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.lab.conformance.runner import RunnerContract
from gantline.live.runners.slurm.runner import SlurmRunner

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")


@pytest.fixture(scope="module")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allocated]:
    with allocated(tmp_path_factory.mktemp("slurm"), "--gres=gpu:a100:2") as found:
        yield found


class OnSlurm:
    """A home, and no keeper left of it. Devices 0 and 1 are on one node, 2 and 3 on the next."""

    patience = 200.0  # how long processes take to start is the machine's affair
    kind: type[FolderExecutor[SlurmRunner]] | type[FolderBench[SlurmRunner]]

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, allocation: Allocated) -> Iterator[None]:
        self.home, self.job = tmp_path, allocation.job
        yield
        end_all(self.made.executor)

    def bench(self) -> Bench:
        self.made = self.kind(self.home, lambda home: SlurmRunner(home, job=self.job))
        return self.made  # type: ignore[return-value]


def end_all(runner: SlurmRunner) -> None:
    """No keeper of a test outlives it."""
    for one in runner.known.alive():
        one.write_order(want="stop", grace=0.0)
    end = time.monotonic() + 60.0
    while runner.known.alive() and time.monotonic() < end:
        time.sleep(0.05)
    runner.close()


class TestExecutorOnSlurm(OnSlurm, ExecutorContract):
    kind = FolderExecutor


class TestRunnerOnSlurm(OnSlurm, RunnerContract):
    kind = FolderBench


# The contract about gangs in an allocation of a real Slurm cluster of three nodes.


class SlurmGangs(GangBench):
    """Devices 0 and 1 are on node0, 2 and 3 on node1."""

    across = (0, 2)
    runner: SlurmRunner

    def __init__(self, allocation: Allocated, home: Path) -> None:
        self.allocation, self.home = allocation, home
        (home / "board").mkdir()
        super().__init__(home / "board")

    def open(self) -> SlurmRunner:
        return SlurmRunner(self.home, job=self.allocation.job)

    def lose(self, name: str) -> None:
        self.allocation.cluster.lose(name)

    def away(self) -> AbstractContextManager[None]:
        return self.allocation.cluster.without_controller()


class TestGangsOnSlurm(GangContract):
    seconds = 200.0

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, allocation: Allocated) -> Iterator[None]:
        self.home, self.allocation = tmp_path, allocation
        yield
        end_all(self.made.runner)

    def bench(self) -> SlurmGangs:
        return SlurmGangs(self.allocation, self.home)

    made: SlurmGangs
