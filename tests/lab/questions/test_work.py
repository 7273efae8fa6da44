"""How much is done for an answer, counted: decodings, decisions of the policy, questions to the thread that decides."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.live.specs import running, submit, until

from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.questions.forecast import Setup, forecast
from gantline.live.service.access import Caller, Role
from gantline.live.service.context import Context, Service
from gantline.live.service.questions import explain_now
from gantline.live.wall_time import Message
from gantline.policies.fifo import Fifo
from gantline.simulator import roll_forward

QUEUE = {
    "now": 600,
    "cluster": "1x4",
    "jobs": [
        {"id": "runs", "gpus": 4, "estimate": 400, "devices": [0, 1, 2, 3]},
        *({"id": f"w{k}", "gpus": 1 + k % 4, "estimate": 100, "arrival": 1 + k} for k in range(200)),
    ],
}


@dataclass(frozen=True)
class CountingFifo(Fifo):
    """Notes how often it is asked."""

    asked: ClassVar[list[float]] = []

    def decide(self, snapshot: Snapshot) -> Plan:
        self.asked.append(snapshot.now)
        return super().decide(snapshot)

    def by_key(self) -> bool:
        return True  # said anew: it counts beside a decision of its own only where both are its own


CountingFifo.__module__ = "gantline.policies.fifo"  # as ours is: policies of others run under a guard


def test_futures_share_one_decoding_and_need_no_decision_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Any] = []
    snapshot = decode_snapshot(QUEUE)
    monkeypatch.setattr(roll_forward, "decode_snapshot", lambda *given: decoded.append(given) or decode_snapshot(*given))
    found = forecast(snapshot, CountingFifo(), None, Setup(samples=20))
    assert len(found) == 201
    assert (decoded, CountingFifo.asked) == ([], [])


def test_what_is_known_is_told_while_the_scheduler_is_busy(tmp_path: Path) -> None:
    busy, go = threading.Event(), threading.Event()
    with running(tmp_path, "cpu:1") as scheduler:
        first = submit(scheduler, "sleep 1000")
        ids = [first, *(submit(scheduler, "true") for _ in range(3))]
        until(lambda: [scheduler.view().jobs[id].reason for id in ids[1:]] == ["resources", "blocked", "blocked"])
        scheduler.post(Message(call=lambda: (busy.set(), go.wait(60.0))[0]))
        assert busy.wait(60.0)
        here = Context(Service(scheduler, None, None, tmp_path), Caller("root", Role.ADMIN))  # type: ignore[arg-type]
        told = explain_now(here, scheduler.view().jobs[ids[-1]])
        go.set()
    assert (told["position"], told["waiting"], told["ahead_waiting"]) == (3, 3, 2)
    assert [one["job"] for one in told["ahead"]] == [first, *ids[1:-1]]
