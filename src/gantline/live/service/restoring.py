"""Puts a backup in the place of a store: the one way back, because the store must know that it is older than what its jobs have left."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from gantline.core.errors import GantlineError, NotFoundError, RefusedError
from gantline.live.archive import Archive
from gantline.live.service.home import Home
from gantline.live.service.jobs_folder import JobsFolder
from gantline.live.store import RESTORED, Lock, SqlStore
from gantline.live.store.backup import copy_of, file_of


@dataclass(frozen=True)
class Restored:
    """What is there now, and what is lost."""

    jobs: int  # in the backup
    open: tuple[str, ...]  # those of them that had not ended
    lost: tuple[str, ...]  # jobs that only the store had which was there, as far as it can be read
    newest: int  # the highest number of a job that has been given out
    running: tuple[str, ...]  # jobs whose processes are still there
    aside: str  # where the store is that was there; empty: none was


def restore(home: Home, backup: Path, store: str = "") -> Restored:
    """Put a copy of the backup in the place of the store; refused while a service runs, and whole or not at all."""
    target = file_of(store or home.store, "use pg_restore: the next gantline up sees that the database is older")
    if not backup.is_file():
        raise NotFoundError("no such file", where=str(backup), fix="name one that gantline backup has written")
    home.make()
    with ExitStack() as held:
        for lock, what in ((home.lock, "this home"), (Path(f"{target}.lock"), "this store")):
            held.callback(Lock(lock, what).release)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        held.callback(_remove, draft)
        _check(backup)
        copy_of(backup, draft)
        opened = SqlStore.open(draft)
        with closing(opened):
            folder, now = JobsFolder(home.jobs), {str(job["id"]): job for job in opened.jobs()}
            folder.check(opened.identity, has_past=opened.checkpoint() is not None)
            with opened.transaction() as write:
                write.remember(RESTORED, time.time())
        before, given = _jobs_of(target)
        newest = max(opened.newest, given, Archive(home.archive).newest(), folder.newest())
        unfinished = tuple(id for id, job in now.items() if job.get("finished") is None)
        lost = tuple(id for id in before if id not in now)
        return Restored(len(now), unfinished, lost, newest, tuple(folder.running()), _put(draft, target))


def _check(backup: Path) -> None:
    """Refuse what is no store, or is damaged, before anything is changed."""
    try:
        with closing(sqlite3.connect(f"file:{backup}?mode=ro", uri=True)) as opened:
            found = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
            opened.execute("select value from meta where key = 'identity'").fetchone()[0]
    except (sqlite3.Error, TypeError) as error:
        raise RefusedError(
            f"is no backup of a store: {error}", where=str(backup), fix="name one that gantline backup has written"
        ) from None
    if found != "ok":
        raise RefusedError(f"is damaged: {found}", where=str(backup), fix="name another backup")


def _jobs_of(file: Path) -> tuple[list[str], int]:
    """The jobs of the store that is there, and the highest number that it has given out; none where it cannot be read."""
    wrong = contextlib.suppress(GantlineError, OSError, KeyError, TypeError, ValueError)
    with wrong, closing(SqlStore.open(file, write=False)) as opened:
        return [str(job["id"]) for job in opened.jobs()], opened.newest
    return [], 0


def _put(draft: Path, target: Path) -> str:
    """Put it in its place, and what is there aside, with its log; where it stops in between, a service sees that the store is older."""
    aside = ""
    if target.exists():
        number = 1
        while (kept := target.with_name(f"{target.name}-set-aside-{number}")).exists():
            number += 1
        os.link(target, kept)
        for end in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{target}{end}").rename(f"{kept}{end}")
        aside = str(kept)
    draft.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return aside


def _remove(draft: Path) -> None:
    for end in ("", "-wal", "-shm", ".lock"):
        Path(f"{draft}{end}").unlink(missing_ok=True)
