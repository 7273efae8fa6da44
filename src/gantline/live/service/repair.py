"""Mending a store while no service uses it: what would keep a service from starting is found, set aside and named.

Nothing is thrown away: lines of the journal stay where they are, marked; a checkpoint that cannot be read is kept under a key of its own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from gantline.core.cluster_spec import decode_cluster
from gantline.core.errors import GantlineError, NotFoundError, RefusedError
from gantline.core.json_reader import Reader
from gantline.live.scheduler.archive import Archive, Launches
from gantline.live.scheduler.job_registry import Job
from gantline.live.scheduler.replay import Past, one_line
from gantline.live.scheduler.setup import Saved, Setup, make_loop
from gantline.live.service.home import Home
from gantline.live.service.jobs_folder import JobsFolder
from gantline.live.store import RESTORED, Lock, SqlStore, Transaction
from gantline.live.store.connection import copy_of, file_of
from gantline.live.store.records import Entry
from gantline.live.wall_time import Live


@dataclass(frozen=True)
class Mended:
    """Something that is not as it should be, and what is done about it; nothing: that is beyond this command."""

    where: str
    what: str
    done: str = ""


class _Still:
    """A clock that does not move: the journal has the times."""

    def now(self) -> float:
        return 0.0


def repair_store(store: SqlStore, *, archive: Archive | None = None, dry_run: bool = False) -> list[Mended]:
    """Find what would keep a service from starting, and set it aside unless it is a dry run; `archive` has the jobs that left the store."""
    broken = store.check()
    if broken:
        return [Mended("database", broken, "")]
    found: list[Mended] = []
    with store.transaction() as write:
        found += _Repair(store, write, archive, dry_run).run()
    return found


class _Repair:
    def __init__(self, store: SqlStore, write: Transaction, archive: Archive | None, dry_run: bool) -> None:
        self.store, self.write, self.archive, self.dry_run = store, write, archive, dry_run

    def run(self) -> Iterator[Mended]:
        """Jobs, then the newest checkpoint that can be read, then the lines behind it."""
        readable = []
        for record in self.store.jobs():
            try:
                Job.from_record(record)
                readable.append(record)
            except Exception as error:
                yield Mended(f"job {record.get('id', '?')}", f"its record cannot be read: {one_line(error)}")
        launches = Launches(readable, self.archive)
        yield from self._twice()
        loop, after = None, 0
        for number, covers, saved in reversed(self.store.numbered_checkpoints()):
            try:
                loop, after = _loop(saved, launches), covers
                break
            except Exception as error:
                if not self.dry_run:
                    self.write.set_checkpoint_aside(number)
                yield Mended(f"checkpoint {number}", f"cannot be read: {one_line(error)}", "set aside; an older one and the journal do")
        if loop is None:
            if self.store.checkpoint() is not None:
                yield Mended("checkpoints", "none can be read", "")
            return
        past = Past.read(self.store.journal(after))
        past.fold(loop)
        for line, why in past.aside.items():
            yield self._aside(line, why)

    def _twice(self) -> Iterator[Mended]:
        """Decisions that are recorded twice; versions before this one did that when they were killed."""
        seen: set[int] = set()
        for number, line in self.store.journal(kind="decision"):
            decision = line.get("decision")
            if decision in seen:
                yield self._aside(number, f"records decision {decision} once more")
            elif isinstance(decision, int):
                seen.add(decision)

    def _aside(self, number: int, why: str) -> Mended:
        if not self.dry_run:
            self.write.entries([Entry("aside", {"number": number, "why": why})])
        return Mended(f"journal line {number}", why, "set aside")


def _loop(saved: Saved, launches: Launches) -> Live:
    cluster = decode_cluster(Reader(saved["snapshot"], "checkpoint"))
    setup = Setup.from_json(saved["setup"])
    loop = make_loop(setup, saved, cluster, None, _Still())
    t = loop.state.tables
    loop.inbox.able = lambda row: setup.able(launches[t.ids[row]], t.cluster)
    return loop


# Repairs a home in which no service can start: checks its store and its folder of jobs, and sets aside what prevents
# a start.


def mend(home: Home, store: str = "", *, dry_run: bool = False) -> list[Mended]:
    """What was found, and what was done about it. Refused while a service uses the home."""
    if not home.path.is_dir():
        raise NotFoundError("no such folder", where=str(home.path), fix="name the folder of a service: --home")
    lock = Lock(home.lock, "this home")
    try:
        where: str | Path = store or home.store
        if isinstance(where, Path) and not where.is_file():
            return [Mended("database", f"{where} is not there")]
        opened = SqlStore.open(where)
        try:
            found = repair_store(opened, archive=Archive(home.archive), dry_run=dry_run)
            if not all(one.done for one in found):
                return found  # what is in the database is not known: whose the folder is neither
            has_past = opened.checkpoint() is not None
            return [*found, *_folder(home, opened.identity, dry_run, adopt=has_past)]
        finally:
            opened.close()
    finally:
        lock.release()


def _folder(home: Home, identity: str, dry_run: bool, *, adopt: bool = False) -> list[Mended]:
    folder = JobsFolder(home.jobs)
    if folder.belongs_to(identity, adopt=adopt):
        return []
    what = f"belongs to another store ({folder.owner or 'of an earlier version'})"
    running = folder.running()
    if running:
        return [Mended(str(folder.path), f"{what}, and its jobs still run: {', '.join(running[:5])}")]
    target = folder.aside()
    if not dry_run:
        folder.path.rename(target)
    return [Mended(str(folder.path), what, f"set aside as {target.name}")]


# Puts a backup in the place of a store: the one way back, because the store must know that it is older than what its
# jobs have left.


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
