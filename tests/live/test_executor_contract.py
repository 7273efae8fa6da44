"""One contract for every executor: the virtual one, the faulty one, and this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.states import engine_of
from tests.live.folder_bench import FolderBench, FolderExecutor
from tests.live.specs import end_all

import gantline
from gantline.core.columns import Job
from gantline.core.phases import RUNNING
from gantline.engine.drivers.acknowledged import ImmediateExecutor
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.executor import Can, News, Order, Report, Verb
from gantline.lab.conformance.executor import Bench, ExecutorContract, InPlaceContract
from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.lab.conformance.runner import RunnerContract
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.runners.runner_events import Ending, Present, RunnerEvents


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
        return FolderExecutor(self.home, lambda home: LocalRunner(home, "cpu:4"), self.launch)  # type: ignore[return-value]


class TestLocal(OnThisMachine, ExecutorContract):
    launch = ONE


class TestLocalRanks(OnThisMachine, InPlaceContract):
    """A rank per device: others join and leave."""

    launch = RANKS


# The contract of runners on this machine, and that it notices a runner that breaks it.


class TestLocalRunner(RunnerContract):
    kind: type[LocalRunner] = LocalRunner

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> Iterator[None]:
        self.home = tmp_path
        yield
        self.made.executor.close()
        end_all(tmp_path)

    def bench(self) -> FolderBench[LocalRunner]:
        self.made = FolderBench(self.home, lambda home: self.kind(home, "cpu:2"))
        return self.made


class StopsByKill(LocalRunner):
    def attach(self, contact: Contact) -> None:
        def task(row: int) -> Task:
            found = contact.task(row)
            return replace(found, launch=replace(found.launch, stop_signal="KILL"))

        super().attach(replace(contact, task=task))


class CallsNoRoll(LocalRunner):
    def adopt(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        return ()


class LosesExitCodes(LocalRunner):
    def attach(self, contact: Contact) -> None:
        def tell(events: RunnerEvents) -> None:
            contact.tell(RunnerEvents((), tuple((report, ending and Ending(None, ending.why)) for report, ending in events.reports)))

        super().attach(replace(contact, tell=tell))


class ObeysOlderEpochs(LocalRunner):
    def send(self, order: Order, now: float) -> None:
        known = self.known.get("job0")
        older = known is not None and order.verb is Verb.STOP and order.epoch < known.epoch
        super().send(replace(order, epoch=known.epoch) if older and known is not None else order, now)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (StopsByKill, "test_a_job_that_is_stopped_can_save"), (CallsNoRoll, "test_what_still_runs_is_adopted"),
        (LosesExitCodes, "test_how_a_job_ended_is_told_with_its_exit_code"),
        (ObeysOlderEpochs, "test_orders_of_an_older_epoch_change_nothing"),
    ],
)  # fmt: skip
def test_a_planted_defect_is_noticed(kind: type[LocalRunner], test: str, tmp_path: Path) -> None:
    contract = TestLocalRunner()
    contract.home, contract.kind, contract.seconds = tmp_path, kind, 3.0
    try:
        with pytest.raises(AssertionError):
            getattr(contract, test)()
    finally:
        contract.made.executor.close()
        end_all(tmp_path)


# The contract about gangs on this machine, and that it notices runners which break it; four more such are above.


class LocalGangs(GangBench):
    """Real processes of this machine, which is one node without an engine beneath."""

    def __init__(self, home: Path, kind: type[LocalRunner]) -> None:
        self.home, self.kind = home, kind
        (home / "board").mkdir()
        super().__init__(home / "board")

    def open(self) -> LocalRunner:
        return self.kind(self.home, "cpu:2")


class TestLocalGangs(GangContract):
    kind: type[LocalRunner] = LocalRunner

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> Iterator[None]:
        self.home = tmp_path
        yield
        self.made.runner.close()
        end_all(tmp_path)

    def bench(self) -> LocalGangs:
        return LocalGangs(self.home, self.kind)


class EchoesDevices(LocalRunner):
    """It reports the devices of the newest order."""

    ordered: tuple[int, ...] = ()

    def attach(self, contact: Contact) -> None:
        def tell(events: RunnerEvents) -> None:
            contact.tell(RunnerEvents((), tuple((replace(report, devices=self.ordered), ending) for report, ending in events.reports)))

        super().attach(replace(contact, tell=tell))

    def send(self, order: Order, now: float) -> None:
        self.ordered = order.devices
        super().send(order, now)


class RestartsInsteadOfGoingOn(LocalRunner):
    def send(self, order: Order, now: float) -> None:
        super().send(replace(order, onto=-1), now)


class LeavesARankBehind(LocalRunner):
    """It starts the second rank beside its keeper, and forgets it."""

    left: list[subprocess.Popen[bytes]]

    def attach(self, contact: Contact) -> None:
        super().attach(contact)
        self.left, write = [], self.writer.order

        def order(given: Order, task: Task, one: Incarnation) -> dict[str, Any]:
            found = write(given, task, one)
            for rank in found["ranks"][1:]:
                self.left.append(subprocess.Popen(["/bin/sh", "-c", found["command"][0]], env=found["env"] | rank, start_new_session=True))
            return {**found, "ranks": found["ranks"][:1]}

        self.writer.order = order  # type: ignore[method-assign]

    def close(self) -> None:
        super().close()
        for process in self.left:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class ReportsTheEndTooEarly(LocalRunner):
    def send(self, order: Order, now: float) -> None:
        super().send(order, now)
        if order.verb is Verb.STOP:
            self._contact.tell(RunnerEvents(reports=((Report(News.STOPPED, order.row, order.epoch, time.time()), Ending()),)))


@pytest.mark.parametrize(
    ("kind", "test", "noticed"),
    [
        (EchoesDevices, "test_a_report_says_where_the_gang_is_and_not_what_was_ordered", "it runs on device 0"),
        (RestartsInsteadOfGoingOn, "test_a_gang_that_shall_go_on_with_other_devices_is_not_started_again", "stopped and started instead"),
        (LeavesARankBehind, "test_an_end_is_reported_when_every_rank_has_saved_and_is_gone", "still on their devices"),
        (ReportsTheEndTooEarly, "test_an_end_is_reported_when_every_rank_has_saved_and_is_gone", "still on their devices"),
    ],
)
def test_a_planted_defect_of_gangs_is_noticed(kind: type[LocalRunner], test: str, noticed: str, tmp_path: Path) -> None:
    contract = TestLocalGangs()
    contract.home, contract.kind = tmp_path, kind
    try:
        with pytest.raises(AssertionError, match=noticed):
            getattr(contract, test)()
    finally:
        contract.made.runner.close()
        end_all(tmp_path)
