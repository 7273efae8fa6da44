"""One connection that writes, held for the life of the service, and a pool of those that read. A second writer is refused.

SQLite: write-ahead log, every commit synced; the lock is a file beside the database. PostgreSQL: an advisory lock of the session that
writes, so that a service that loses its connection cannot write.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from gantline.live.store.records import HEAD, UNREADABLE

_ADVISORY = 0x67616E74  # "gant"
_INCREMENTAL = 2  # SQLite: space is given back on request
_PAGES = 2000  # that are given back at once
_HEIRS = 10.0  # seconds for processes that inherited the lock of a killed service to release it

BACKUP = "name the file of a store, or go back to a backup: gantline restore FILE"
_URLS = "write sqlite:///FILE or postgresql://USER@HOST/NAME"


class StoreError(RefusedError, OSError):
    """The store did not take what was to be written: nothing of it is there, and nothing of it was acknowledged."""

    def __str__(self) -> str:
        return RefusedError.__str__(self)


class LostStoreError(RuntimeError):
    """The store cannot be used further: another service has it, or what is in it is not known. The service ends; the next one reads it."""


def url_of(where: str | Path) -> URL:
    """A file, or a URL of SQLite or PostgreSQL."""
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(where))
    try:
        url = make_url(where)
    except ArgumentError:
        raise UsageError(
            "is not the URL of a database", where="--store", fix="write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(f"'{url.drivername}' is no known store", where="--store", fix=_URLS)
    return url


def spelled(url: URL) -> str:
    """The URL without its password."""
    return url.render_as_string(hide_password=True)


class Lock:
    """The file that only one service can hold; the system gives it up when its process dies, however it dies."""

    def __init__(self, path: Path, what: str = "this store") -> None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            raise UsageError(f"no folder '{path.parent}'", where="store", fix="create it first") from None
        self._file: IO[str] = os.fdopen(descriptor, "r+", encoding="utf-8")
        until = time.monotonic() + _HEIRS
        while not self._taken():
            self._file.seek(0)
            holder = self._file.read(32).strip() or "?"
            if holder.isdigit() and not Path(f"/proc/{holder}").exists() and time.monotonic() < until:
                time.sleep(0.01)  # killed while it started a process, which gives up what it inherited in a moment
                continue
            self._file.close()
            raise RefusedError(
                f"another service (process {holder}) uses {what}",
                where=str(path.with_suffix("") if path.suffix else path.parent),
                fix="stop it first: gantline down",
            ) from None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def release(self) -> None:
        self._file.close()


class Connections:
    """The connection that writes (None for readers), and the engine that reads."""

    def __init__(self, url: URL, *, write: bool) -> None:
        self.url = url
        self.sqlite = url.get_backend_name() == "sqlite"
        in_memory = self.sqlite and url.database in (None, "", ":memory:")
        self._lock = Lock(Path(f"{url.database}.lock")) if self.sqlite and write and not in_memory else None
        if self._lock is not None:
            os.close(os.open(str(url.database), os.O_RDWR | os.O_CREAT, 0o600))  # for its owner alone, as its log will be
        self._writing_engine = _engine(url, one=True) if write else None
        self.reading = self._writing_engine if in_memory and self._writing_engine is not None else _engine(url)
        self.writer: Connection | None = None
        try:
            if self._writing_engine is not None:
                self.writer = self._connect(self._writing_engine)
            elif self.sqlite and not Path(str(url.database)).exists():
                raise UsageError("no such store", where=spelled(url), fix="start a service there first: gantline up")
        except BaseException:
            self.close()
            raise

    def _connect(self, engine: Engine) -> Connection:
        try:
            found = engine.connect()
        except SQLAlchemyError as error:
            if self.sqlite:
                raise RefusedError(f"is not a Gantline store: {cause(error)}", where=str(self.url.database), fix=BACKUP) from None
            raise UnreachableError(
                f"the store does not answer: {cause(error)}", where=spelled(self.url), fix="check the address and the permissions"
            ) from None
        if not self.sqlite:
            held = found.execute(text("select pg_try_advisory_lock(:key)"), {"key": _ADVISORY}).scalar()
            found.execute(text("set synchronous_commit to on"))
            found.commit()
            if not held:
                found.close()
                raise RefusedError("another service uses this store", where=spelled(self.url), fix="stop it first: gantline down")
        return found

    def roll_back(self) -> None:
        """End a transaction whose COMMIT has failed: SQLite leaves it open, and no other one could begin."""
        if not self.sqlite or self.writer is None or self.writer.invalidated:
            return
        try:
            self.writer.rollback()
            raw = self.writer.connection.driver_connection
            if raw is not None and raw.in_transaction:
                raw.rollback()
        except (sqlite3.Error, SQLAlchemyError):
            self.writer.invalidate()

    def reconnect(self) -> None:
        """After the database was away: another connection that writes, with the lock, if no other service has taken it."""
        assert self._writing_engine is not None
        if self.writer is not None:
            with contextlib.suppress(SQLAlchemyError):
                self.writer.close()
        self._writing_engine.dispose()
        self.writer = self._connect(self._writing_engine)

    def fold(self) -> None:
        """Bring what is in the write-ahead log into the file itself; where that cannot be now (a full disk), the log has it."""
        if self.sqlite and self.writer is not None and not self.writer.closed and not self.writer.invalidated:
            raw = self.writer.connection.driver_connection
            assert raw is not None
            with contextlib.suppress(sqlite3.Error):
                raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def vacuum(self) -> bool:
        """Give unused space back to the file system; whether there is more. An older file is written anew for that, once."""
        assert self.writer is not None
        raw = self.writer.connection.driver_connection
        assert raw is not None
        if raw.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
            raw.execute(f"PRAGMA auto_vacuum={_INCREMENTAL}")
            raw.execute("VACUUM")
        raw.executescript(f"PRAGMA incremental_vacuum({_PAGES})")  # not execute(), which gives back one page
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return bool(raw.execute("PRAGMA freelist_count").fetchone()[0])

    def close(self) -> None:
        if self.writer is not None:
            with contextlib.suppress(SQLAlchemyError):
                self.writer.close()
        for engine in (self._writing_engine, self.reading):
            if engine is not None:
                engine.dispose()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _engine(url: URL, *, one: bool = False) -> Engine:
    if url.get_backend_name() != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=not one, pool_size=1 if one else 5, json_deserializer=_read)
        except ModuleNotFoundError as error:
            raise UsageError(f"needs {error.name}", where=spelled(url), fix="pip install 'gantline[postgresql]'") from None
    options: dict[str, Any] = {"poolclass": StaticPool} if one else {}
    found = create_engine(url, connect_args={"check_same_thread": False, "timeout": 30}, json_deserializer=_read, **options)

    @event.listens_for(found, "connect")
    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        for order in (
            f"auto_vacuum={_INCREMENTAL}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            *(() if one else ("query_only=ON",)),
        ):
            connection.execute(f"PRAGMA {order}")

    @event.listens_for(found, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if one else "BEGIN")

    return found


def _read(text: str) -> Any:
    """A value as it was written; one that is not JSON must not keep the others from being read."""
    try:
        return json.loads(text)
    except ValueError:
        return {UNREADABLE: text}


def cause(error: SQLAlchemyError) -> str:
    """The database's error message, in one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


# Brings a store up to the present tables, in the transaction of the connection given.


def version_of(connection: Connection) -> str | None:
    """The migration that a store has reached; None: it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("select version_num from alembic_version")).scalar()


def migrate(connection: Connection) -> None:
    """Run the migrations that are missing."""
    found = version_of(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise RefusedError(f"was written by a newer Gantline (version {found} of its tables)", where="store", fix="upgrade gantline")
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "_migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


# A copy of a store as it is at one instant, made while a service writes to it.


def back_up(where: str | Path, target: Path) -> int:
    """Copy the store at `where` into a new file, for its owner alone; its size in bytes. Whole or not at all, and on the disk."""
    source = file_of(where, "use pg_dump")
    if not source.is_file():
        raise NotFoundError("no such store", where=str(source), fix="start a service there first: gantline up")
    if target.exists():
        raise RefusedError("already exists", where=str(target), fix="name another file")
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    copy_of(source, draft)
    draft.replace(target)
    return target.stat().st_size


def file_of(where: str | Path, fix: str) -> Path:
    """The file of a store; a database server is refused, with what to do instead."""
    url = url_of(where)
    if url.get_backend_name() != "sqlite":
        raise RefusedError("a database server makes its own backups", where="--store", fix=fix)
    return Path(str(url.database))


def copy_of(source: Path, draft: Path) -> None:
    """Write a new file with what the database in another one is at this instant; nothing is left of one that fails."""
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)) as live, closing(sqlite3.connect(draft)) as copy:
            live.backup(copy)  # in one step: the state of one instant
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
    except (OSError, sqlite3.Error) as error:
        draft.unlink(missing_ok=True)
        raise RefusedError(f"cannot be written: {error}", where=str(draft.parent), fix="choose another place") from None
