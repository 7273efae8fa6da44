"""The contract about gangs in an allocation of a real Slurm cluster of three nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.system.slurm import Allocated, allocated, missing
from tests.system.test_slurm_contract import end_all

from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.live.runners.slurm.runner import SlurmRunner

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")


@pytest.fixture(scope="module")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allocated]:
    with allocated(tmp_path_factory.mktemp("slurm"), "--gres=gpu:a100:2") as found:
        yield found


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
