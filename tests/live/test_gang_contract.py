"""The contract about gangs on this machine, and that it notices runners which break it; `test_runner_contract.py` has four more such."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import end_all

from gantline.engine.executor import News, Order, Report, Verb
from gantline.lab.conformance.gangs import GangBench, GangContract
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.runners.runner_events import Ending, RunnerEvents


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
def test_a_planted_defect_is_noticed(kind: type[LocalRunner], test: str, noticed: str, tmp_path: Path) -> None:
    contract = TestLocalGangs()
    contract.home, contract.kind = tmp_path, kind
    try:
        with pytest.raises(AssertionError, match=noticed):
            getattr(contract, test)()
    finally:
        contract.made.runner.close()
        end_all(tmp_path)
