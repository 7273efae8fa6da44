"""The contract of runners on this machine, and that it notices a runner that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.specs import contact_of, end_all

from gantline.conformance.runner import RunnerContract, Told
from gantline.engine.executor import Order, Verb
from gantline.runtime.bulletins import Bulletin, Ending
from gantline.runtime.launch import Launch
from gantline.runtime.local.runner import LocalRunner
from gantline.runtime.premises import Contact, Task
from gantline.runtime.roll_call import Present

_JOB = """
trap 'touch $GANTLINE_CHECKPOINT/left; exit 15' TERM
while [ ! -e $GANTLINE_CHECKPOINT/end ]; do sleep 0.02; done
exit $(cat $GANTLINE_CHECKPOINT/end)
"""


class LocalBench:
    """Real processes of this machine."""

    launch = Launch((_JOB,), shell=True, resumes=True)

    def __init__(self, home: Path, kind: type[LocalRunner]) -> None:
        self.home, self.kind = home, kind
        self.checkpoint = home / "jobs" / "job0" / "checkpoint"
        self._attach()

    def _attach(self) -> list[Present]:
        self._told: list[Told] = []
        self.runner = self.kind(self.home, "cpu:2")
        present = list(self.runner.roll_call())
        self.runner.attach(contact_of(self.runner, lambda row: self.launch, lambda bulletin: self._told.extend(bulletin.reports)))
        return present

    def send(self, order: Order) -> None:
        self.runner.send(order, 0.0)

    def told(self) -> list[Told]:
        return list(self._told)

    def end(self, code: int) -> None:
        (self.checkpoint / "draft").write_text(str(code))
        (self.checkpoint / "draft").rename(self.checkpoint / "end")

    def has_saved(self) -> bool:
        return (self.checkpoint / "left").exists()

    def begin_again(self) -> list[Present]:
        self.runner.close()
        return self._attach()


class TestLocal(RunnerContract):
    kind: type[LocalRunner] = LocalRunner

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> Iterator[None]:
        self.home = tmp_path
        yield
        self.made.runner.close()
        end_all(tmp_path)

    def bench(self) -> LocalBench:
        self.made = LocalBench(self.home, self.kind)
        return self.made


class StopsByKill(LocalRunner):
    def attach(self, contact: Contact) -> None:
        def task(row: int) -> Task:
            found = contact.task(row)
            return replace(found, launch=replace(found.launch, stop_signal="KILL"))

        super().attach(replace(contact, task=task))


class CallsNoRoll(LocalRunner):
    def roll_call(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        return ()


class LosesExitCodes(LocalRunner):
    def attach(self, contact: Contact) -> None:
        def tell(bulletin: Bulletin) -> None:
            contact.tell(Bulletin((), tuple((report, ending and Ending(None, ending.why)) for report, ending in bulletin.reports)))

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
        contract.made.runner.close()
        end_all(tmp_path)
