"""Answers that are made once for all who ask, in the background, and kept until the state changes."""

from __future__ import annotations

import threading
from typing import Any

from tests.waiting import until

from gantline.core.errors import RefusedError
from gantline.lab.questions.asker import SharedAnswers


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
