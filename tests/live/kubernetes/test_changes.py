"""Changes of an object that others change as well: an edit that comes between the look and the change is kept, and decided upon."""

from __future__ import annotations

import copy
import queue
from collections.abc import Callable
from typing import Any

import pytest
from tests.live.kubernetes.test_workloads import merged, pytorch

from gantline.live.runners.kubernetes import write_queue as changes
from gantline.live.runners.kubernetes.client import ApiError
from gantline.live.runners.kubernetes.workloads import Workload
from gantline.live.runners.kubernetes.write_queue import WorkloadChanges, WriteQueue


class Server:
    """One object. `edits` are made one by one, each before a change of a given version is looked at."""

    def __init__(self, value: dict[str, Any], edits: int = 0) -> None:
        self.value: dict[str, Any] | None = copy.deepcopy(value)
        self.edits, self.reads = edits, 0

    def get(self, path: str) -> dict[str, Any]:
        self.reads += 1
        if self.value is None:
            raise ApiError(404, "NotFound", "it is gone", path)
        return copy.deepcopy(self.value)

    def merge(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        if self.value is None:
            raise ApiError(404, "NotFound", "it is gone", path)
        given = change["metadata"].get("resourceVersion")
        if given is not None and self.edits:
            self.edits -= 1
            self._write({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 5}}}})
        head = self.value["metadata"]
        if given not in (None, head["resourceVersion"]) or change["metadata"]["uid"] != head["uid"]:
            raise ApiError(409, "Conflict", "the object has been modified", path)
        self._write(change)
        return copy.deepcopy(self.value)

    def _write(self, change: dict[str, Any]) -> None:
        version = int(self.value["metadata"]["resourceVersion"])
        self.value = merged(self.value, change)
        self.value["metadata"]["resourceVersion"] = str(version + 1)


class Desk:
    """Suspends the object as soon as it sees that it is not."""

    def __init__(self, server: Server) -> None:
        self.inbox: queue.Queue[Callable[[], None]] = queue.Queue()
        self.writes = WriteQueue(server, self.inbox.put, lambda: True)  # type: ignore[arg-type]
        self.refusals: list[ApiError] = []
        self.lost: list[Workload] = []
        self.changes = WorkloadChanges(server, self.writes, self.saw, self.lost.append)  # type: ignore[arg-type]

    def saw(self, workload: Workload) -> None:
        if not workload.is_suspended:
            self.changes.make(workload, workload.hold(), self.refusals.append)

    def run(self) -> None:
        while self.writes.under_way:
            self.inbox.get(timeout=60)()
        self.writes.close()


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_LATE_PAUSE", 0.001)


def test_an_edit_between_the_look_and_the_change_is_kept_and_the_change_is_decided_anew() -> None:
    seen = pytorch()
    server = Server(dict(seen.value), edits=1)
    desk = Desk(server)
    desk.saw(seen)
    desk.run()
    now = seen.renewed(server.get("path"))
    assert now.is_suspended
    assert now.wanted == {"Master": 1, "Worker": 5}
    assert (desk.refusals, desk.lost) == ([], [])


def test_one_that_changes_all_the_time_is_told_so_and_changed_in_the_end() -> None:
    seen = pytorch()
    server = Server(dict(seen.value), edits=changes._TRIES + 2)
    desk = Desk(server)
    told: list[str] = []
    saw = desk.changes.saw

    def listen(workload: Workload) -> None:
        told.append(workload.notes.get("gantline.io/conflict", ""))
        saw(workload)

    desk.changes.saw = listen
    desk.saw(seen)
    desk.run()
    assert server.reads == changes._TRIES - 1
    assert [bool(words) for words in told] == [False] * (changes._TRIES - 1) + [True] * 3 + [False]
    assert "10 times in a row" in told[-2]
    assert seen.renewed(server.get("path")).is_suspended
    assert (desk.refusals, desk.lost) == ([], [])


@pytest.mark.parametrize("is_replaced", [True, False], ids=["another has its name", "none has its name"])
def test_one_that_is_gone_when_it_is_to_be_changed_is_lost(is_replaced: bool) -> None:
    seen = pytorch()
    server = Server(merged(seen.value, {"metadata": {"uid": "another"}}))
    if not is_replaced:
        server.value = None
    desk = Desk(server)
    desk.saw(seen)
    desk.run()
    assert [one.uid for one in desk.lost] == ["u"]
    assert desk.refusals == []
    assert server.value is None or not pytorch().renewed(server.value).is_suspended


def test_what_the_server_never_takes_is_refused_once() -> None:
    seen = pytorch()
    server = Server(dict(seen.value))

    def invalid(path: str, change: dict[str, Any]) -> dict[str, Any]:
        raise ApiError(422, "Invalid", "field is immutable", path)

    server.merge = invalid  # type: ignore[method-assign]
    desk = Desk(server)
    desk.saw(seen)
    desk.run()
    assert [refusal.code for refusal in desk.refusals] == [422]
    assert desk.lost == []
