"""Questions put to another process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.lab.questions.test_explain import JOBS
from tests.live.specs import running, submit
from tests.waiting import until

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.questions.asker import Asker, SharedAnswers
from gantline.lab.questions.forecast import Setup, forecast
from gantline.live.service.access import Caller, Role
from gantline.live.service.context import Context, Service
from gantline.live.service.questions import explain_now
from gantline.live.wall_time import Message
from gantline.policies.fifo import Fifo
from gantline.simulator import roll_forward

NOW = {"now": 600, "cluster": "2x4", "jobs": JOBS}


@pytest.fixture(scope="module")
def asker():
    found = Asker()
    yield found
    found.close()


def question(ask, **more):
    return {"ask": ask, "snapshot": NOW, "policy": "fifo", "samples": 2, "sigma": 0.0, **more}


def test_one_worker_answers_one_question_after_the_other(asker):
    assert asker.ask(question("explain", job="new"))["waits_for"] == ["small"]
    pid = asker._worker.pid
    assert [one["job"] for one in asker.ask(question("forecast", jobs=["wide"]))["jobs"]] == ["wide"]
    assert asker.ask(question("what-if", other="srtf"))["other"] == "srtf"
    assert asker._worker.pid == pid


def test_the_past_is_asked_about_with_its_rows(asker):
    rows = [
        {"job": f"j{k}", "arrival": 10.0 * k, "gpus": 2, "duration": 100.0 - k, "started": 10.0 * k, "ended": 120.0 + 9 * k}
        for k in range(9)
    ]
    found = asker.ask({"ask": "past", "policy": "fifo", "jobs": rows, "cluster": "1x4", "other": "srtf", "replicas": 2})
    assert found["jobs"] == 9
    assert {one["metric"] for one in found["errors"]} == {"jct_mean", "queueing_mean", "makespan"}
    with pytest.raises(UsageError, match="no jobs"):
        asker.ask({"ask": "past", "policy": "fifo", "jobs": [], "cluster": "1x4", "other": "srtf"})


def test_refusals_come_back_as_what_they_were(asker):
    with pytest.raises(NotFoundError, match="no job 'nobody'"):
        asker.ask(question("explain", job="nobody"))
    with pytest.raises(UsageError, match="no question 'sing'"):
        asker.ask(question("sing"))
    assert asker.ask(question("explain", job="new"))["act"] == "waits"


def test_a_snapshot_is_sent_once_for_questions_about_it_and_read_whenever_it_is_sent(asker):
    def about_now(**more):
        asked = {name: value for name, value in question("explain", job="new", **more).items() if name != "snapshot"}
        return asker.ask(asked, "7", lambda: sent.append(NOW) or NOW)

    sent = []
    with pytest.raises(NotFoundError, match="no policy 'fifi'"):
        about_now(policy="fifi")  # refused before the snapshot was decoded
    assert [about_now()["act"], about_now()["act"], len(sent)] == ["waits", "waits", 2]

    emptier = {**NOW, "jobs": [job for job in JOBS if job["id"] == "new"]}
    asker._about = ""  # as where another service takes over the worker and its own states have the same names
    asked = {name: value for name, value in question("explain", job="new").items() if name != "snapshot"}
    assert asker.ask(asked, "7", lambda: emptier)["act"] == "starts"


def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_comes(asker, tmp_path):
    slow = tmp_path / "slow.py"
    slow.write_text(
        """
import time
from dataclasses import dataclass

from gantline import OrderPolicy


@dataclass(frozen=True)
class Slow(OrderPolicy):
    def key(self, snapshot):
        time.sleep(600)
"""
    )
    asker.limit = 0.2
    with pytest.raises(RefusedError, match=r"no answer within 0\.2 s"):
        asker.ask({**question("explain", job="new"), "policy": f"{slow}:Slow"})
    assert asker._worker is None
    asker.limit = 120.0
    assert asker.ask(question("explain", job="new"))["act"] == "waits"


# Answers that are made once for all who ask, in the background, and kept until the state changes.


def test_nobody_waits_and_one_answer_serves_all() -> None:
    go, calls, version = threading.Event(), [], 7
    shared = SharedAnswers(lambda: version)

    def make() -> dict[str, Any]:
        calls.append(1)
        assert go.wait(60.0)
        return {"number": len(calls)}

    assert [shared.get("forecast", make, 7) for _ in range(50)] == [None] * 50, "each is told at once that it is on its way"
    go.set()
    assert until(lambda: shared.get("forecast", make, 7)) == {"number": 1}
    assert shared.get("forecast", make, 3) == {"number": 1}, "a later state than the one that was seen"
    assert len(calls) == 1
    version = 8
    assert shared.get("forecast", make, 7) == {"number": 1}, "good for whoever saw the state before"
    assert shared.get("forecast", make, 8) is None
    assert until(lambda: shared.get("forecast", make, 8)) == {"number": 2}


def test_an_answer_that_is_begun_for_a_later_state_serves_those_before() -> None:
    go, calls = threading.Event(), []
    shared = SharedAnswers(lambda: 9)

    def make() -> dict[str, Any]:
        calls.append(1)
        assert go.wait(60.0)
        return {}

    shared.get("a", make, 5)
    until(lambda: calls)
    assert [shared.get("a", make, since) for since in (5, 6, 9)] == [None] * 3
    go.set()
    until(lambda: shared.get("a", make, 9) is not None)
    assert len(calls) == 1


def test_a_refusal_is_told_and_then_tried_again() -> None:
    tries = []

    def make() -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 1:
            raise RefusedError("too few", where="past")
        return {"fine": True}

    shared = SharedAnswers(lambda: 1)

    def refused() -> bool:
        try:
            return shared.get("x", make, 1) is not None
        except RefusedError:
            return True

    until(refused)
    assert until(lambda: shared.get("x", make, 1)) == {"fine": True}


# How much is done for an answer, counted: decodings, decisions of the policy, questions to the thread that decides.

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
