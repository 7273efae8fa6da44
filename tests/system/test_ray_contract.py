"""The contracts of executors and runners on a real Ray cluster of three nodes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.specs import contact_of
from tests.system.ray_cluster import RayCluster

from gantline.conformance.executor import Bench, ExecutorContract
from gantline.conformance.runner import RunnerContract, Told
from gantline.engine.executor import Order, Report
from gantline.runtime.bulletins import Bulletin
from gantline.runtime.launch import Launch
from gantline.runtime.ray.runner import RayRunner
from gantline.runtime.roll_call import Present

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
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2)
    yield cluster
    cluster.stop()


class ExecutorOnRay:
    """Devices 0 and 1 are on one node, 2 and 3 on the other."""

    launch = Launch((_UNTIL_FINISH,), shell=True, grace=10.0, save_signal="USR1", resumes=True)

    def __init__(self, home: Path, address: str) -> None:
        self.home = home
        self.executor, self._received = RayRunner(home, "cpu", address=address), deque[Bulletin]()
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


class RunnerOnRay:
    launch = Launch((_UNTIL_END,), shell=True, resumes=True)

    def __init__(self, home: Path, address: str) -> None:
        self.home, self.address = home, address
        self.checkpoint = home / "jobs" / "job0" / "checkpoint"
        self._attach()

    def _attach(self) -> list[Present]:
        self._told: list[Told] = []
        self.executor = RayRunner(self.home, "cpu", address=self.address)
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


class OnRay:
    """A home, and no keeper left of it."""

    patience = 200.0  # how long processes take to start is the machine's affair
    kind: type[ExecutorOnRay] | type[RunnerOnRay]

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, ray_cluster: RayCluster) -> Iterator[None]:
        self.home, self.address = tmp_path, ray_cluster.address
        yield
        end_all(self.made.executor)

    def bench(self) -> Bench:
        self.made = self.kind(self.home, self.address)
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
    kind = ExecutorOnRay


class TestRunnerOnRay(OnRay, RunnerContract):
    kind = RunnerOnRay
