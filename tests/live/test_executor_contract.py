"""One contract for every executor: the virtual one, the faulty one, and this machine."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.engine.states import engine_of
from tests.live.specs import contact_of, end_all

import gantline
from gantline.core.columns import Job
from gantline.core.phases import RUNNING
from gantline.engine.drivers.acknowledged import ImmediateExecutor
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.executor import Can, Report
from gantline.lab.conformance.executor import Bench, ExecutorContract, InPlaceContract
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_events import RunnerEvents


class VirtualBench:
    """An executor on virtual time, a second per look."""

    def __init__(self, executor: FaultyExecutor) -> None:
        self.executor, self._now = executor, 0.0

    def now(self) -> float:
        return self._now

    def finish(self, row: int) -> None:
        self._now += 2_000.0

    def receive(self) -> list[Report]:
        self._now += 1.0
        return self.executor.receive(self._now)


class PromptBench:
    """Its jobs end when the tables say so."""

    def __init__(self) -> None:
        rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 100.0} for k in range(4)]
        self.state = engine_of(rows, "1x4").state
        self.executor, self._looks = ImmediateExecutor(self.state), 0

    def now(self) -> float:
        return float(self._looks)

    def finish(self, row: int) -> None:
        F, I = self.state.tables.F, self.state.tables.I
        I[Job.PHASE, row], I[Job.EPOCH, row], F[Job.RATE, row] = RUNNING, 1, 1.0
        F[Job.DONE, row], F[Job.DUE, row] = F[Job.WORK, row], 0.0
        self.state.activate(np.array([row]))
        self.state.rebuild()

    def receive(self) -> list[Report]:
        self._looks += 1
        return self.executor.receive(0.0)


_JOB = """
trap 'touch $GANTLINE_CHECKPOINT/saved' USR1
while [ ! -e $GANTLINE_CHECKPOINT/finish ]; do
  cd $GANTLINE_FOLDER
  if [ -e grant.json ]; then sed 's/.*"epoch": \\([0-9]*\\).*/\\1/' grant.json > switched; fi
  sleep 0.02
done
"""


_GANG = """
import os, time
from gantline import train
job = train.join(gang=train.SocketGang())
job.keep()
for _ in job.steps(10**9):
    time.sleep(0.01)
    if job.sum([float(os.path.exists(os.environ["GANTLINE_CHECKPOINT"] + "/finish"))])[0]:
        break
"""

ONE = Launch((_JOB,), shell=True, grace=10.0, save_signal="USR1", changes=("devices",), resumes=True)
RANKS = Launch(
    (sys.executable, "-S", "-c", _GANG),
    env={"PYTHONPATH": str(Path(gantline.__file__).parents[1])},
    processes=0,
    changes=("devices",),
    resumes=True,
)


class LocalBench:
    """Real processes that go on until they are told to finish and can use other devices."""

    def __init__(self, home: Path, launch: Launch) -> None:
        self.home = home
        self.executor, self._received = LocalRunner(home, "cpu:4"), deque[RunnerEvents]()
        self.executor.attach(contact_of(self.executor, lambda row: launch, self._received.append))

    def now(self) -> float:
        return time.time()

    def finish(self, row: int) -> None:
        (self.home / "jobs" / f"job{row}" / "checkpoint" / "finish").touch()

    def receive(self) -> list[Report]:
        time.sleep(0.03)
        told = [self._received.popleft() for _ in range(len(self._received))]
        return [report for events in told for report, _ in events.reports]


class TestImmediateExecutor(ExecutorContract):
    calm, patience = 2.0, 3.0

    def bench(self) -> Bench:
        return PromptBench()


class TestFaulty(ExecutorContract):
    calm, again = 60.0, 40.0
    faults = Faults(delay=(0.0, 2.0), loss=0.2, doubled=0.3, start=(0.0, 3.0), stop=(0.0, 3.0), release=(0.0, 1.0), heartbeat=5.0)

    @pytest.fixture(autouse=True, params=range(4))
    def _seed(self, request: pytest.FixtureRequest) -> None:
        self.seed = request.param

    def bench(self) -> Bench:
        return VirtualBench(FaultyExecutor(np.full(4, 1_500.0), self.faults, self.seed, able=frozenset(Can)))


class OnThisMachine:
    """A home, and nobody left in it."""

    patience = 240.0  # how long processes take to start is the machine's affair
    launch: Launch

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> Iterator[None]:
        self.home = tmp_path
        yield
        self._bench.executor.close()  # type: ignore[attr-defined]
        end_all(tmp_path)

    def bench(self) -> Bench:
        return LocalBench(self.home, self.launch)


class TestLocal(OnThisMachine, ExecutorContract):
    launch = ONE


class TestLocalRanks(OnThisMachine, InPlaceContract):
    """A rank per device: others join and leave."""

    launch = RANKS
