"""Writes to a Kubernetes API server which it cannot take: they are repeated, and others have their turn."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from gantline.live.runners.kubernetes import write_queue as writes
from gantline.live.runners.kubernetes.client import AwayError
from gantline.live.runners.kubernetes.write_queue import WriteQueue


def test_writes_that_are_never_taken_do_not_keep_others_from_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "_PAUSE", 0.01)
    inbox: queue.Queue[Callable[[], None]] = queue.Queue()
    under_way = WriteQueue(None, inbox.put, lambda: True)  # type: ignore[arg-type]  # each write here brings its own answer
    answers: list[Any] = []

    def never() -> dict[str, Any]:
        raise AwayError("internal error", where="services/a")

    for number in range(50):
        under_way.begin(f"never {number}", never, lambda answer, refusal: answers.append("never"))
    under_way.begin("good", lambda: {"kind": "Pod"}, lambda answer, refusal: answers.append(answer))
    inbox.get(timeout=60)()

    assert answers == [{"kind": "Pod"}]
    assert len(under_way.under_way) == 50, "they are still to be made"
    under_way.close()
    assert inbox.empty(), "what is closed tells nothing more"
