"""The store of a service: durable when a transaction ends, readable by any thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.exc import SQLAlchemyError

from gantline.core.errors import RefusedError
from gantline.runtime.store import schema as s
from gantline.runtime.store.connection import Connections, StoreError, cause, spelled, url_of
from gantline.runtime.store.migrations.migrate import migrate, version_of
from gantline.runtime.store.records import Checkpoint, Decision, Entry, Event, History, JobRecord, QueueRecord, Request, TokenRecord
from gantline.runtime.store.writing import Transaction

_BLOCK = 1000  # rows that are read at a time


class Store:
    """One writer, any number of readers. All times but those of tokens are seconds since `created`, which is in seconds since 1970."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._turn = threading.RLock()
        self.observe: Callable[[str], None] | None = None  # told "before" and "after" every commit
        if connections.writer is not None:
            self._prepare()
        elif self._version() != s.HEAD:
            self.close()
            raise RefusedError(
                "has other tables than this Gantline", where=spelled(connections.url), fix="start its service once: gantline up"
            )
        self.created = float(self.recall("created"))

    @staticmethod
    def open(where: str | Path, *, write: bool = True) -> Store:
        """A SQLite file, or a URL; made, migrated and locked if it is to be written."""
        connections = Connections(url_of(where), write=write)
        try:
            return Store(connections)
        except SQLAlchemyError as error:
            connections.close()
            raise RefusedError(f"is no store of Gantline: {cause(error)}", where=spelled(connections.url)) from None
        except BaseException:
            connections.close()
            raise

    def close(self) -> None:
        with self._turn:
            self._connections.close()

    def _prepare(self) -> None:
        connection = self._connections.writer
        assert connection is not None
        with connection.begin():
            migrate(connection)
            if connection.execute(select(s.meta.c.value).where(s.meta.c.key == "created")).scalar() is None:
                Transaction(connection).remember("created", time.time())

    def _version(self) -> str | None:
        with self._connections.reading.connect() as connection:
            return version_of(connection)

    # --- writing ----------------------------------------------------------------------------------------------------------
    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All of it or nothing; what was written is durable when the block has ended without an error."""
        connection = self._connections.writer
        if connection is None:
            raise RefusedError("the store was opened for reading", where="store")
        with self._turn:
            if connection.closed or connection.invalidated:
                raise StoreError("the connection to the store is gone", where="store", fix="restart the service")
            try:
                with connection.begin():
                    yield Transaction(connection)
                    if self.observe is not None:
                        self.observe("before")
            except SQLAlchemyError as error:
                raise StoreError(
                    f"the store cannot be written: {cause(error)}", where="store", fix="nothing was changed; try again"
                ) from error
            if self.observe is not None:
                self.observe("after")

    # --- reading ----------------------------------------------------------------------------------------------------------
    def jobs(
        self,
        *,
        ids: Sequence[str] | None = None,
        user: str | None = None,
        queue: str | None = None,
        states: Sequence[str] | None = None,
        numbers: Sequence[int] | None = None,
        name: str | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[JobRecord]:
        """Jobs in order of submission (or the newest first)."""
        c = s.jobs.c
        found = select(s.jobs)
        for column, wanted in ((c.user, user), (c.queue, queue), (c.name, name)):
            found = found if wanted is None else found.where(column == wanted)
        for listed, several in ((c.id, ids), (c.state, states), (c.number, numbers)):
            found = found if several is None else found.where(listed.in_(list(several)))
        order = (c.number.desc(), c.task.desc()) if newest else (c.number, c.task)
        return [JobRecord(**row) for row in self._rows(found.order_by(*order).limit(limit))]

    def job(self, id: str) -> JobRecord | None:
        """The job of that id."""
        return next(iter(self.jobs(ids=[id])), None)

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        rows = self._rows(select(s.jobs.c.state, func.count().label("jobs")).group_by(s.jobs.c.state))
        return {str(row["state"]): int(row["jobs"]) for row in rows}

    def history(self, job: str) -> list[History]:
        """The states of a job, in order."""
        rows = self._rows(select(s.history).where(s.history.c.job == job).order_by(s.history.c.number))
        return [History(**{key: value for key, value in row.items() if key != "number"}) for row in rows]

    def journal(self, after: int = 0) -> Iterator[Entry]:
        """The journal behind an entry, in order; a long one is read in blocks."""
        while rows := self._rows(select(s.journal).where(s.journal.c.number > after).order_by(s.journal.c.number).limit(_BLOCK)):
            yield from (Entry(**row) for row in rows)
            after = rows[-1]["number"]

    def newest_entry(self) -> int:
        return int(self._rows(select(func.coalesce(func.max(s.journal.c.number), 0).label("n")))[0]["n"])

    def checkpoint(self) -> Checkpoint | None:
        """The newest one."""
        rows = self._rows(select(s.checkpoints).order_by(s.checkpoints.c.entry.desc()).limit(1))
        return Checkpoint(**rows[0]) if rows else None

    def events(self, *, after: int = 0, job: str | None = None, limit: int = _BLOCK, newest: bool = False) -> list[Event]:
        """Events behind a number, in order; `newest`: the last ones."""
        found = select(s.events).where(s.events.c.number > after)
        found = found if job is None else found.where(s.events.c.job == job)
        return [Event(**row) for row in self._some(found, s.events.c.number, limit, newest)]

    def decisions(self, *, after: int = 0, limit: int = _BLOCK, newest: bool = False) -> list[Decision]:
        """Decisions behind a number, in order; `newest`: the last ones."""
        found = select(s.decisions).where(s.decisions.c.number > after)
        return [Decision(**row) for row in self._some(found, s.decisions.c.number, limit, newest)]

    def request(self, key: str, user: str) -> Request | None:
        """How a request of that key was answered."""
        rows = self._rows(select(s.requests).where(s.requests.c.key == key, s.requests.c.user == user))
        return Request(**rows[0]) if rows else None

    def queues(self) -> list[QueueRecord]:
        """The queues that an operator has set."""
        rows = self._rows(select(s.queues).order_by(s.queues.c.name))
        return [QueueRecord(**{**row, "quota": math.inf if row["quota"] is None else row["quota"]}) for row in rows]

    def tokens(self) -> list[TokenRecord]:
        """All tokens, revoked ones too."""
        return [TokenRecord(**row) for row in self._rows(select(s.tokens).order_by(s.tokens.c.created))]

    def token(self, hash: str) -> TokenRecord | None:
        """The token with that hash."""
        rows = self._rows(select(s.tokens).where(s.tokens.c.hash == hash))
        return TokenRecord(**rows[0]) if rows else None

    def recall(self, key: str, default: Any = None) -> Any:
        """A value of the store itself."""
        rows = self._rows(select(s.meta.c.value).where(s.meta.c.key == key))
        return rows[0]["value"] if rows else default

    def _some(self, found: Select[Any], number: Any, limit: int, newest: bool) -> list[Mapping[str, Any]]:
        rows = self._rows(found.order_by(number.desc() if newest else number).limit(limit))
        return rows[::-1] if newest else rows

    def _rows(self, statement: Select[Any]) -> list[Mapping[str, Any]]:
        try:
            with self._connections.reading.connect() as connection:
                return [dict(row) for row in connection.execute(statement).mappings()]
        except SQLAlchemyError as error:
            raise StoreError(f"the store cannot be read: {cause(error)}", where="store") from error
