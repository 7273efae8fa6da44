"""What the scheduler writes down, what a store must promise to hold it, and the tables of a database for it.

Everything durable is an entry. Entries of one `append` are written together or not at all, and are on disk when it returns: the scheduler
answers no request before that. A restart reads the newest checkpoint, the journal behind it, and the jobs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sqlalchemy import JSON, Boolean, Column, Float, Integer, MetaData, String, Table, Text

UNREADABLE = "unreadable"
"""The only key of a value that a store could not read; its text is there."""
Kind = Literal["journal", "job", "event", "checkpoint", "aside", "queue", "archived", "life"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to remember, as plain JSON.

    * ``journal``: a line as `drivers.journal` has them, an input (with ``heard``) or a decision; numbered 1, 2, 3 ... by the store.
    * ``job``: what is new about the job ``value["id"]``; other keys stay as they were. Its first one has ``spec``, ``launch``, ``user``,
      ``request`` (the id of the request that brought it; one user's requests are unique) and ``submitted``.
      The first job of an array also has ``common``, which holds for all of its jobs; the others say ``like`` (the id of that first one)
      and ``index``, and have a ``command`` only where theirs is another one. `whole` puts them together again.
    * ``event``: something that users may want to see: ``time``, ``event``, mostly ``job``, ``state``, ``why``.
    * ``queue``: a queue that was made because a job named it: ``name``.
    * ``checkpoint``: the scheduler's state; it covers all journal lines before it.
    * ``archived``: the jobs ``value["jobs"]`` are in the archive, and leave with their events; ``value["totals"]`` is what they add up to,
      with those that had left before. A checkpoint that does not need them comes with it.
    * ``life``: another life of the store begins, under ``generation``; numbers of jobs go on behind ``newest``.
    * ``aside``: the journal line ``value["number"]`` cannot be applied (``why``): it is kept, and `journal` leaves it out.
    """

    kind: Kind
    value: Mapping[str, Any]


def whole(records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Records in order of submission, each with what it has in common with its array."""
    common: dict[str, Mapping[str, Any]] = {}
    for record in records:
        if "common" in record:
            common[record["id"]] = record["common"]
        if "like" in record:
            yield like(common[record["like"]], record)
        else:
            yield {key: value for key, value in record.items() if key != "common"}


def like(common: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a job of an array, with what all jobs of it have in common."""
    launch = {**common["launch"], "array_index": record["index"], **({"command": record["command"]} if "command" in record else {})}
    spec = {**common["spec"], "index": record["index"]} if "index" in common["spec"] else common["spec"]
    return {**common, "launch": launch, "spec": spec, **{key: record[key] for key in record if key not in ("like", "index", "command")}}


class Store(Protocol):
    """A durable store with one writer."""

    def append(self, entries: Sequence[Entry]) -> None:
        """All of them or none; durable when it returns. OSError, or a subclass: nothing was written."""
        ...

    def journal(self, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """Numbered lines behind the one of that number, in order."""
        ...

    def checkpoint(self) -> tuple[int, dict[str, Any]] | None:
        """The newest one, and the number of the last journal line that it covers."""
        ...

    def aside(self) -> list[dict[str, Any]]:
        """Lines that were set aside: ``number``, ``why``, ``line``."""
        ...

    def jobs(self) -> Iterator[dict[str, Any]]:
        """All jobs in order of submission, as their entries add up."""
        ...

    def events(self, *, limit: int, newest: bool = False) -> list[dict[str, Any]]:
        """The first so many events, or the `newest`, in order."""
        ...

    def archived(self) -> dict[str, Any]:
        """What the jobs that have left for the archive add up to: ``newest`` is the highest number that was given; empty: none has."""
        ...


@dataclass
class MemoryStore:
    """A store in memory: for tests, and for trying things out."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    event_log: list[dict[str, Any]] = field(default_factory=list)
    saved: tuple[int, dict[str, Any]] | None = None
    put_aside: dict[int, str] = field(default_factory=dict)  # why, by number
    totals: dict[str, Any] = field(default_factory=dict)

    def append(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            value = copy.deepcopy(dict(entry.value))
            if entry.kind == "journal":
                self.lines.append(value)
            elif entry.kind == "job":
                self.records.setdefault(value["id"], {}).update(value)
            elif entry.kind == "event":
                self.event_log.append(value)
            elif entry.kind == "aside":
                self.put_aside[value["number"]] = value["why"]
            elif entry.kind == "archived":
                self.records = {id: record for id, record in self.records.items() if id not in set(value["jobs"])}
                self.event_log = [event for event in self.event_log if event.get("job") not in set(value["jobs"])]
                self.totals = value["totals"]
            elif entry.kind == "life":
                self.totals = {**self.totals, "newest": max(value["newest"], self.totals.get("newest", 0))}
            elif entry.kind == "checkpoint":
                self.saved = (len(self.lines), value)

    def journal(self, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        numbered = enumerate(self.lines[after:], start=after + 1)
        yield from ((number, line) for number, line in numbered if number not in self.put_aside)

    def aside(self) -> list[dict[str, Any]]:
        return [{"number": number, "why": why, "line": self.lines[number - 1]} for number, why in sorted(self.put_aside.items())]

    def checkpoint(self) -> tuple[int, dict[str, Any]] | None:
        return self.saved

    def jobs(self) -> Iterator[dict[str, Any]]:
        return whole(list(self.records.values()))

    def events(self, *, limit: int, newest: bool = False) -> list[dict[str, Any]]:
        return self.event_log[-limit:] if newest else self.event_log[:limit]

    def archived(self) -> dict[str, Any]:
        return self.totals


# The tables. Times are seconds since the store was made (`meta.created` says when that was); JSON holds plain values only.

metadata = MetaData()
HEAD = "0002"
"""The newest migration; a store that says another is migrated, or refused if it is newer."""

ASIDE = "set-aside"
"""The kind of a journal line that could not be applied."""

meta = Table("meta", metadata, Column("key", String(64), primary_key=True), Column("value", JSON, nullable=False))

journal = Table(
    "journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(32), nullable=False, index=True),  # which input it is, or a decision
    Column("body", JSON, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),  # the order of submission
    Column("id", String(64), nullable=False, unique=True),
    Column("user", Text, nullable=False, index=True),
    Column("state", String(32), nullable=False, index=True),
    Column("body", JSON, nullable=False),  # all that is known of it
)

events = Table(
    "events",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("job", String(64), nullable=False, index=True),
    Column("body", JSON, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("covers", Integer, nullable=False),  # the newest line of the journal that is in it
    Column("body", JSON, nullable=False),
)

queues = Table(
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("weight", Float, nullable=False),
    Column("quota", Float),  # none: no bound
    Column("borrow", Boolean, nullable=False),
    Column("borrow_limit", Float),  # none: no limit
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("user", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
)


# Queues and tokens as values.


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as an operator set it: how many devices it is promised, how many more it may borrow, and its weight among others."""

    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token at rest: its hash, never itself. Times are seconds since 1970."""

    id: str
    hash: str
    user: str
    role: str
    created: float
    expires: float | None = None
    revoked: float | None = None
