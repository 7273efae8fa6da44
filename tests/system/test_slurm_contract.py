"""The contracts of executors and runners in an allocation of a real Slurm cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.specs import contact_of
from tests.system.slurm import Allocated, allocated, missing

from gantline.conformance.executor import Bench, ExecutorContract
from gantline.conformance.runner import RunnerContract, Told
from gantline.engine.executor import Order, Report
from gantline.runtime.bulletins import Bulletin
from gantline.runtime.launch import Launch
from gantline.runtime.roll_call import Present
from gantline.runtime.slurm.runner import SlurmRunner

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")

_UNTIL_FINISH = """
trap 'touch $GANTLINE_CHECKPOINT/saved' USR1
while [ ! -e $GANTLINE_CHECKPOINT/finish ]; do sleep 0.05; done
"""
_UNTIL_END = """
trap 'touch $GANTLINE_CHECKPOINT/left; exit 15' TERM
while [ ! -e $GANTLINE_CHECKPOINT/end ]; do sleep 0.05; done
exit $(cat $GANTLINE_CHECKPOINT/end)
"""


@pytest.fixture(scope="module")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allocated]:
    with allocated(tmp_path_factory.mktemp("slurm"), "--gres=gpu:a100:2") as found:
        yield found


class ExecutorOnSlurm:
    """Devices 0 and 1 are on one node, 2 and 3 on the next."""

    launch = Launch((_UNTIL_FINISH,), shell=True, grace=10.0, save_signal="USR1", resumes=True)

    def __init__(self, home: Path, job: str) -> None:
        self.home = home
        self.executor, self._received = SlurmRunner(home, job=job), deque[Bulletin]()
        self.executor.roll_call()
        self.executor.attach(contact_of(self.executor, lambda row: self.launch, self._received.append))

    def now(self) -> float:
        return time.time()

    def finish(self, row: int) -> None:
        (self.home / "jobs" / f"job{row}" / "checkpoint" / "finish").touch()

    def receive(self) -> list[Report]:
        time.sleep(0.05)
        told = [self._received.popleft() for _ in range(len(self._received))]
        return [report for bulletin in told for report, _ in bulletin.reports]


class RunnerOnSlurm:
    launch = Launch((_UNTIL_END,), shell=True, resumes=True)

    def __init__(self, home: Path, job: str) -> None:
        self.home, self.job = home, job
        self.checkpoint = home / "jobs" / "job0" / "checkpoint"
        self._attach()

    def _attach(self) -> list[Present]:
        self._told: list[Told] = []
        self.executor = SlurmRunner(self.home, job=self.job)
        present = list(self.executor.roll_call())
        self.executor.attach(contact_of(self.executor, lambda row: self.launch, lambda bulletin: self._told.extend(bulletin.reports)))
        return present

    def send(self, order: Order) -> None:
        self.executor.send(order, 0.0)

    def told(self) -> list[Told]:
        return list(self._told)

    def end(self, code: int) -> None:
        (self.checkpoint / "draft").write_text(str(code))
        (self.checkpoint / "draft").rename(self.checkpoint / "end")

    def has_saved(self) -> bool:
        return (self.checkpoint / "left").exists()

    def begin_again(self) -> list[Present]:
        self.executor.close()
        return self._attach()


class OnSlurm:
    """A home, and no keeper left of it."""

    patience = 200.0  # how long processes take to start is the machine's affair
    kind: type[ExecutorOnSlurm] | type[RunnerOnSlurm]

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, allocation: Allocated) -> Iterator[None]:
        self.home, self.job = tmp_path, allocation.job
        yield
        end_all(self.made.executor)

    def bench(self) -> Bench:
        self.made = self.kind(self.home, self.job)
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
    kind = ExecutorOnSlurm


class TestRunnerOnSlurm(OnSlurm, RunnerContract):
    kind = RunnerOnSlurm
