"""Watches through the troubles of a server: it denies what it will grant, forgets what was before, and answers again."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.live.specs import until

from gantline.live.runners.kubernetes import client as following
from gantline.live.runners.kubernetes import write_queue as writes
from gantline.live.runners.kubernetes.client import ApiError, AwayError, Follower
from gantline.live.runners.kubernetes.write_queue import WriteQueue


class Server:
    """Answers to watches one after another as a script says: an object that has changed, or an error. Then nothing happens."""

    def __init__(self, *script: int | str) -> None:
        self.script, self.lists = list(script), 0

    def pages(self, path: str, **query: str) -> Iterator[tuple[list[dict[str, Any]], str]]:
        self.lists += 1
        yield [], "1"

    def watch(self, path: str, version: str, **query: str) -> Iterator[dict[str, Any]]:
        answer: int | str = self.script.pop(0) if self.script else ""
        if isinstance(answer, int):
            raise ApiError(answer, "", "said by the script", path)
        if answer:
            yield {"type": "MODIFIED", "object": {"metadata": {"uid": answer, "resourceVersion": "2"}}}


def followed(server: Server) -> tuple[Follower, list[str]]:
    seen: list[str] = []
    one = Follower(server, "/api/v1/pods", lambda value, gone: seen.append(value["metadata"]["uid"]), lambda uids, version: None)  # type: ignore[arg-type]
    one.first()
    one.start()
    return one, seen


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_LATER", 0.01)


def test_a_server_that_denies_at_first_is_asked_again() -> None:
    one, seen = followed(server := Server(403, 401, 403, "later"))
    until(lambda: seen == ["later"], "what happens when it grants again")
    one.stop()
    assert (one.failure, server.lists) == (None, 1)


def test_a_denial_that_lasts_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_BELIEVED", 0.0)
    one, seen = followed(Server(403, "later"))
    until(lambda: one.failure is not None, "the failure")
    assert not seen


def test_only_a_version_that_is_too_old_is_listed_again() -> None:
    one, seen = followed(server := Server("first", 410, "second"))
    until(lambda: seen == ["first", "second"], "both")
    one.stop()
    assert (one.gone, server.lists) == (1, 2)


# Writes to a Kubernetes API server which it cannot take: they are repeated, and others have their turn.


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
