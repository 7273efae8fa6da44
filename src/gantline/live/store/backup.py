"""A copy of a store as it is at one instant, made while a service writes to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.store.connection import url_of


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
