"""The contract of runners on this machine, and that it notices a runner that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.live.folder_bench import FolderBench
from tests.live.specs import end_all

from gantline.engine.executor import Order, Verb
from gantline.lab.conformance.runner import RunnerContract
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.runners.runner_events import Ending, Present, RunnerEvents


class TestLocal(RunnerContract):
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
    contract = TestLocal()
    contract.home, contract.kind, contract.seconds = tmp_path, kind, 3.0
    try:
        with pytest.raises(AssertionError):
            getattr(contract, test)()
    finally:
        contract.made.executor.close()
        end_all(tmp_path)
