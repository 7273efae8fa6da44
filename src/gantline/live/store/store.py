"""The scheduler's store in SQL: durable when `append` returns, readable by any thread."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from gantline.core.errors import RefusedError, UnreachableError
from gantline.live.store import records
from gantline.live.store.connection import BACKUP, Connections, LostStoreError, StoreError, cause, migrate, spelled, url_of, version_of
from gantline.live.store.records import Entry, QueueRow, TokenRow, whole
from gantline.live.store.writing import ARCHIVED, COMMITS, GENERATION, RESTORED, Transaction, number_of

_BLOCK = 1000  # rows that are read at a time
_AT_ONCE = 500  # ids in one question
_PATIENCE = 30.0  # seconds for a database that went away during a commit to come back


class SqlStore:
    """One writer, any number of readers.

    `created`: when the store was made, in seconds since 1970. `identity`: what no other store has. `commits`: how many transactions
    there have been, and `newest`: the highest number of a job; by them a store is seen to be older than it was.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._turn = threading.RLock()
        self._writer = uuid.uuid4().hex  # is in the store as long as no other writer is
        self.observe: Callable[[str], None] | None = None  # called with "before" and "after" at every commit
        self.committed: Callable[[], None] = lambda: None  # called when a transaction is durable
        self.failing: tuple[float, str] | None = None  # since when writes fail, by the monotonic clock, and why
        self._folded = True  # whether all that was written is in the file itself
        if connections.writer is not None:
            self._prepare()
        elif self._version() != records.HEAD:
            raise RefusedError(
                "has other tables than this Gantline", where=spelled(connections.url), fix="start its service once: gantline up"
            )
        created, identity = self.recall("created"), self.recall("identity", "")
        if not isinstance(created, float | int) or not isinstance(identity, str):
            raise RefusedError("is damaged: it does not say which store it is", where=spelled(connections.url), fix=BACKUP)
        self.created, self.identity = float(created), identity
        self.commits = int(self.recall(COMMITS, 0))
        self.newest = max(self._newest(), int(self.archived().get("newest", 0)))

    @staticmethod
    def open(where: str | Path, *, write: bool = True) -> SqlStore:
        """A SQLite file, or a URL; made, migrated and locked if it is to be written."""
        connections = Connections(url_of(where), write=write)
        try:
            return SqlStore(connections)
        except SQLAlchemyError as error:
            connections.close()
            raise RefusedError(f"is not a Gantline store: {cause(error)}", where=spelled(connections.url), fix=BACKUP) from None
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
            if connection.execute(select(records.meta.c.value).where(records.meta.c.key == "created")).scalar() is None:
                Transaction(connection).remember("created", time.time())
            Transaction(connection).remember("writer", self._writer)
            if connection.execute(select(records.meta.c.value).where(records.meta.c.key == "identity")).scalar() is None:
                Transaction(connection).remember("identity", uuid.uuid4().hex)
            if connection.execute(select(records.meta.c.value).where(records.meta.c.key == GENERATION)).scalar() is None:
                has_past = connection.execute(select(records.checkpoints.c.number).limit(1)).scalar() is not None
                Transaction(connection).remember(GENERATION, "" if has_past else uuid.uuid4().hex)  # folders of older versions say none
        self._connections.fold()

    def _version(self) -> str | None:
        with self._connections.reading.connect() as connection:
            return version_of(connection)

    # --- writing ----------------------------------------------------------------------------------------------------------
    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All of it or nothing; what was written is durable when the block has ended without an error."""
        if self._connections.writer is None:
            raise RefusedError("the store was opened for reading", where="store")
        with self._turn:
            connection = self._ready()
            doubt = None  # the number of a transaction of which it is not known whether it was committed
            try:
                with connection.begin() as whole:
                    write = Transaction(connection)
                    yield write
                    write.remember(COMMITS, self.commits + 1)
                    if self.observe is not None:
                        self.observe("before")
                    if not self._connections.sqlite:
                        doubt = connection.execute(text("select txid_current()")).scalar()
                    whole.commit()
            except SQLAlchemyError as error:
                self._connections.roll_back()
                if doubt is None or not self._was_committed(int(doubt)):
                    raise self._refused(cause(error)) from error
            self.failing, self._folded = None, False
            self.commits, self.newest = self.commits + 1, max(self.newest, write.newest)
            self.committed()
            if self.observe is not None:
                self.observe("after")

    def _refused(self, why: str) -> StoreError:
        """The error of a write that has failed; since when they fail is remembered."""
        self.failing = (self.failing[0] if self.failing is not None else time.monotonic()), why
        return StoreError(f"the store cannot be written: {why}", where="store", fix="nothing was changed; try again")

    def try_again(self) -> None:
        """Find out whether it can be written again."""
        with self.transaction():
            pass

    def fold(self) -> None:
        """Bring what was written into the file itself, so that the file alone is all of the store."""
        if not self._folded:
            with self._turn:
                self._connections.fold()
                self._folded = True

    def _ready(self) -> Connection:
        """The connection that writes; a new one, where the database was away in between."""
        connection = self._connections.writer
        if connection is None or connection.closed or connection.invalidated:
            if self._connections.sqlite and (connection is None or connection.closed):
                raise StoreError("the connection to the store is gone", where="store", fix="restart the service")
            try:
                self._connections.reconnect()
            except (RefusedError, UnreachableError, SQLAlchemyError) as error:
                raise self._refused(str(error)) from error
            connection = self._connections.writer
            assert connection is not None
            with connection.begin():
                if connection.execute(select(records.meta.c.value).where(records.meta.c.key == "writer")).scalar() != self._writer:
                    raise LostStoreError("another service has written to the store while the connection to it was lost")
        return connection

    def _was_committed(self, number: int) -> bool:
        """Whether a transaction whose end was not received has been committed."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                with self._ready().begin() as asked:
                    status = asked.connection.execute(text("select txid_status(:number)"), {"number": number}).scalar()
                    if status in ("committed", "aborted"):
                        return bool(status == "committed")
            except (StoreError, SQLAlchemyError):
                pass
            if time.monotonic() > end:
                raise LostStoreError("the database went away while it was written to, and it is not known what was written")
            time.sleep(0.2)

    def append(self, entries: Sequence[Entry]) -> None:
        """All of them or none; durable when it returns."""
        with self.transaction() as write:
            write.entries(entries)

    @property
    def generation(self) -> str:
        """What tells this life of the store from its other ones; empty: the first one of a store that an older version has made."""
        return str(self.recall(GENERATION, ""))

    @property
    def restored(self) -> bool:
        """Whether it is a backup with which no service has begun another life yet."""
        return self.recall(RESTORED) is not None

    def compact(self) -> None:
        """Give up the record of decisions that the newest checkpoints do not need, and the space that it takes."""
        with self.transaction() as write:
            write.trim()
        more = self._connections.sqlite
        while more:  # a piece at a time: others write in between
            with self._turn:
                more = self._connections.vacuum()

    # --- what the scheduler reads -----------------------------------------------------------------------------------------
    def journal(self, after: int = 0, kind: str | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Numbered lines behind the one of that number, in order; a long journal is read in blocks."""
        found = select(records.journal).where(records.journal.c.kind != records.ASIDE).order_by(records.journal.c.number).limit(_BLOCK)
        found = found if kind is None else found.where(records.journal.c.kind == kind)
        while rows := self._rows(found.where(records.journal.c.number > after)):
            yield from ((row["number"], row["body"]) for row in rows)
            after = rows[-1]["number"]

    def checkpoint(self) -> tuple[int, dict[str, Any]] | None:
        """The newest one, and the number of the last line of the journal that it covers."""
        rows = self._rows(select(records.checkpoints).order_by(records.checkpoints.c.number.desc()).limit(1))
        return (rows[0]["covers"], rows[0]["body"]) if rows else None

    def checkpoints(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """All that are kept, oldest first: the first of all, and the newest ones."""
        for row in self._rows(select(records.checkpoints).order_by(records.checkpoints.c.number)):
            yield row["covers"], row["body"]

    def aside(self) -> list[dict[str, Any]]:
        """Lines of the journal that were set aside: ``number``, ``why``, ``line``."""
        rows = self._rows(select(records.journal).where(records.journal.c.kind == records.ASIDE).order_by(records.journal.c.number))
        return [{"number": row["number"], **row["body"]} for row in rows]

    def numbered_checkpoints(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Number, the last line that it covers and the value of each that is kept, oldest first."""
        rows = self._rows(select(records.checkpoints).order_by(records.checkpoints.c.number))
        return [(row["number"], row["covers"], row["body"]) for row in rows]

    def size(self) -> int | None:
        """Bytes of the file and its log; None: only the database server can tell."""
        base = str(self._connections.url.database) if self._connections.sqlite else ""
        return sum(file.stat().st_size for name in (base, f"{base}-wal") if (file := Path(name)).is_file()) if base else None

    def check(self) -> str:
        """What the database's own check reports as broken; empty: nothing."""
        if not self._connections.sqlite:
            return ""
        try:
            with self._connections.reading.connect() as connection:
                found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(5)")]
        except SQLAlchemyError as error:
            return cause(error)
        return "" if found == ["ok"] else "; ".join(found)

    def jobs(self) -> Iterator[dict[str, Any]]:
        """All jobs in order of submission, as their entries add up."""
        return whole(row["body"] for row in self._rows(select(records.jobs.c.body).order_by(records.jobs.c.number)))

    def archived(self) -> dict[str, Any]:
        """What the jobs that have left for the archive add up to."""
        return dict(self.recall(ARCHIVED, {}))

    def some_jobs(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """These jobs in order of submission; an array must be named whole."""
        rows = self._many(select(records.jobs.c.number, records.jobs.c.body), records.jobs.c.id, ids)
        return list(whole(row["body"] for row in sorted(rows, key=lambda row: row["number"])))

    def events_of(self, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """The events of each of these jobs, in order."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in sorted(self._many(select(records.events), records.events.c.job, ids), key=lambda row: row["number"]):
            found.setdefault(row["job"], []).append({"number": row["number"], **row["body"]})
        return found

    # --- what the service reads -------------------------------------------------------------------------------------------
    def _newest(self) -> int:
        rows = self._rows(select(records.jobs.c.id).order_by(records.jobs.c.number.desc()).limit(1))
        return number_of(rows[0]["id"]) if rows else 0

    def job(self, id: str) -> dict[str, Any] | None:
        """All that is known of one job."""
        rows = self._rows(select(records.jobs.c.body).where(records.jobs.c.id == id))
        if rows and (first := rows[0]["body"].get("like")):
            rows = [*self._rows(select(records.jobs.c.body).where(records.jobs.c.id == first)), *rows]
        return list(whole(row["body"] for row in rows))[-1] if rows else None

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        rows = self._rows(select(records.jobs.c.state, func.count().label("jobs")).group_by(records.jobs.c.state))
        return {str(row["state"]): int(row["jobs"]) for row in rows}

    def events(self, *, after: int = 0, job: str | None = None, limit: int = _BLOCK, newest: bool = False) -> list[dict[str, Any]]:
        """Numbered events behind a number, in order; `newest`: the last ones."""
        found = select(records.events.c.number, records.events.c.body).where(records.events.c.number > after)
        found = found if job is None else found.where(records.events.c.job == job)
        return [{"number": row["number"], **row["body"]} for row in self._some(found, records.events.c.number, limit, newest)]

    def decisions(self, *, after: int = 0, limit: int = _BLOCK, newest: bool = False) -> list[dict[str, Any]]:
        """Numbered decisions behind a line of the journal, in order; `newest`: the last ones."""
        found = select(records.journal.c.number, records.journal.c.body).where(
            records.journal.c.number > after, records.journal.c.kind == "decision"
        )
        return [{"number": row["number"], **row["body"]} for row in self._some(found, records.journal.c.number, limit, newest)]

    def queues(self) -> list[QueueRow]:
        """The queues that an operator has set."""
        rows = self._rows(select(records.queues).order_by(records.queues.c.name))
        return [QueueRow(row["name"], row["weight"], _or_infinite(row["quota"]), _or_infinite(row["borrow_limit"])) for row in rows]

    def tokens(self) -> list[TokenRow]:
        """All tokens, revoked ones too."""
        return [TokenRow(**row) for row in self._rows(select(records.tokens).order_by(records.tokens.c.created))]

    def token(self, hash: str) -> TokenRow | None:
        """The token with that hash."""
        rows = self._rows(select(records.tokens).where(records.tokens.c.hash == hash))
        return TokenRow(**rows[0]) if rows else None

    def token_by_id(self, id: str) -> TokenRow | None:
        """The token with that id."""
        rows = self._rows(select(records.tokens).where(records.tokens.c.id == id))
        return TokenRow(**rows[0]) if rows else None

    def recall(self, key: str, default: Any = None) -> Any:
        """A value of the store itself."""
        rows = self._rows(select(records.meta.c.value).where(records.meta.c.key == key))
        return rows[0]["value"] if rows else default

    def _many(self, found: Select[Any], column: Any, values: Sequence[str]) -> list[Mapping[str, Any]]:
        """Rows in which a column has one of many values."""
        blocks = (values[first : first + _AT_ONCE] for first in range(0, len(values), _AT_ONCE))
        return [row for block in blocks for row in self._rows(found.where(column.in_(block)))]

    def _some(self, found: Select[Any], number: Any, limit: int, newest: bool) -> list[Mapping[str, Any]]:
        rows = self._rows(found.order_by(number.desc() if newest else number).limit(limit))
        return rows[::-1] if newest else rows

    def _rows(self, statement: Select[Any]) -> list[Mapping[str, Any]]:
        try:
            with self._connections.reading.connect() as connection:
                return [dict(row) for row in connection.execute(statement).mappings()]
        except SQLAlchemyError as error:
            fix = BACKUP if "malformed" in cause(error) else "is the database there?"
            raise StoreError(f"the store cannot be read: {cause(error)}", where="store", fix=fix) from error


def _or_infinite(number: float | None) -> float:
    return math.inf if number is None else float(number)
