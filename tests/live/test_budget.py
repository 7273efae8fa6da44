"""A live decision has a budget: a policy that takes longer loses its turn, nobody waits for it, and a replay loses the same turns."""

from __future__ import annotations

from pathlib import Path

from tests.live.specs import ended, must_succeed, replays, running, state, submit, until, until_running

from gantline.live.scheduler.setup import Setup
from gantline.live.store import SqlStore
from gantline.traces.files.python_file import GivenCode

SLOW = '''
import os, time
from dataclasses import dataclass
from typing import ClassVar
from gantline.core.policy import OrderPolicy

@dataclass(frozen=True)
class Dozing(OrderPolicy):
    """First come, first served, but for naps."""
    name: ClassVar[str] = "dozing"
    paper: ClassVar[str] = "none"

    def key(self, snapshot):
        while os.path.exists({flag!r}):
            time.sleep(0.01)
        return snapshot.jobs.arrival
'''


def test_a_late_decision_loses_its_turn_and_the_record_says_so(tmp_path: Path) -> None:
    flag, file = tmp_path / "nap", tmp_path / "dozing.py"
    file.write_text(SLOW.format(flag=str(flag)), encoding="utf-8")
    store, policy = SqlStore.open(tmp_path / "store.sqlite"), f"{file}:Dozing"
    with running(tmp_path, "cpu:2", policy, store=store, setup=Setup(budget=0.2)) as scheduler:
        first = submit(scheduler, "sleep 1000")
        until_running(scheduler, first)
        flag.touch()
        second = submit(scheduler, "true")
        until(lambda: scheduler.view().counters["decision_overruns"] >= 1)
        assert state(scheduler, first) == "running"  # the last plan stands
        flag.unlink()
        third = submit(scheduler, "true")
        must_succeed(scheduler, second, third)
    overruns = [line for _, line in store.journal() if "overrun" in line]
    assert overruns
    assert not [line for line in store.decisions() if "overrun" in line]
    why = {event["why"] for event in store.events() if event["event"] == "decision-overrun"}
    assert why == {"the decision took more than 0.2 s"}
    store.close()
    replays(tmp_path / "store.sqlite", code=GivenCode((policy,)))  # the nap is over: only the record knows of it

    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:2", policy, store=store) as scheduler:
        assert scheduler.setup.budget == 0.2  # as last time
        ended(scheduler, submit(scheduler, "true"))
    store.close()
