"""A client of the board: the columns that it was given, with every change applied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx


class Mirror:
    """What a browser would show."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.version: str = body["version"]
        self.head, self.columns = body["head"], body["columns"]
        self.rows = {row[0]: list(row) for row in zip(*(body["jobs"][name] for name in self.columns), strict=True)}
        self.queue: list[int] = list(body["queue"])
        self.devices = list(map(list, zip(body["devices"]["state"], body["devices"]["jobs"], strict=True)))
        self.nodes = body["nodes"]

    def apply(self, change: dict[str, Any]) -> None:
        assert change["from"] == self.version, "a change was lost, or came twice"
        self.version, self.head = change["version"], change["head"]
        for row in change.get("jobs", ()):
            self.rows[row[0]] = row
        for key in change.get("gone", ()):
            self.rows.pop(key, None)
        told = change.get("queue", {})
        if "all" in told:
            self.queue = told["all"]
        self.queue = [key for key in self.queue if key not in told.get("drop", ())]
        for place, key in told.get("add", ()):
            self.queue.insert(place, key)
        for place, state, jobs in change.get("devices", ()):
            self.devices[place] = [state, jobs]

    def job(self, id: str) -> dict[str, Any]:
        """The row of a job by the names of its columns."""
        return next(found for row in self.rows.values() if (found := dict(zip(self.columns, row, strict=True)))["id"] == id)

    def same_as(self, other: Mirror) -> bool:
        mine, others = (
            (one.version, one.head, sorted(one.rows.items()), one.queue, one.devices, one.nodes) for one in (self, other)
        )  # fmt: skip
        return mine == others


def events_of(answer: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and bodies of the events of a stream."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def events_in(frames: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The same of bytes."""
    found = [one.split("\n", 1) for one in frames.decode().split("\n\n") if one]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in found]
