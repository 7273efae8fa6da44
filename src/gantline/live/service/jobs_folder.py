"""The folder of jobs carries the identity of its store, the life of it that was there last, and how far that had come.

Ids begin at 1 in every store: without it, job 1 of a new store would find the exit of an old job 1, and end before it ran. A store that is
older than its folders (a backup, a database server that was restored to an earlier time, a write-ahead log that was lost) would give ids
out again in the same way: it begins another life.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gantline.core.errors import RefusedError
from gantline.live.host import is_locked
from gantline.live.scheduler.recovery import NewLife
from gantline.live.store import SqlStore, number_of

_MARK = "store"
_FLUSH = 1.0  # seconds for which the mark may be newer than on the disk


class _Mark(NamedTuple):
    """What the folder says of its store."""

    identity: str = ""
    generation: str = ""
    commits: int = 0
    newest: int = 0  # the highest number of a job

    def text(self) -> str:
        """Always as long, so that it can be written in its place."""
        return f"{self.identity} {self.generation or '-':32} {self.commits:018d} {self.newest:018d}\n"


@dataclass(frozen=True)
class JobsFolder:
    """``jobs`` in a home."""

    path: Path

    @property
    def mark(self) -> _Mark:
        """Its mark; an older version of Gantline wrote the identity alone."""
        with contextlib.suppress(OSError, ValueError):
            identity, *more = (self.path / _MARK).read_text(encoding="ascii").split()
            if len(more) == 3:
                return _Mark(identity, more[0].strip("-"), int(more[1]), int(more[2]))
            return _Mark(identity)
        return _Mark()

    @property
    def owner(self) -> str:
        """The identity of the store that it belongs to; empty: it has no mark."""
        return self.mark.identity

    def belongs_to(self, identity: str, *, adopt: bool) -> bool:
        """Whether it is this store's.

        One without a mark is, where it is empty; or where the store has a past (`adopt`), for an older version of Gantline made both.
        """
        owner = self.owner
        return owner == identity if owner else adopt or not self._jobs()

    def check(self, identity: str, *, has_past: bool) -> None:
        """Refuse a store that is not its own."""
        if not self.belongs_to(identity, adopt=has_past):
            raise RefusedError(
                "holds the jobs of another store" + (f" ({self.owner})" if self.owner else ""),
                where=str(self.path),
                fix="start the service with that store, put a backup of it back (gantline restore FILE), or set the folder aside: "
                f"gantline repair --home {self.path.parent}",
            )

    def new_life(self, store: SqlStore, archived: int) -> NewLife | None:
        """The life that a store begins which is older than this folder, or than the newest job that is `archived`; None: it goes on."""
        mark = self.mark
        names = self._names()
        given = max(self.newest(), archived)
        if store.restored:
            why = "a backup was put in its place"
        elif mark.commits > store.commits:
            why = f"the last {mark.commits - store.commits} changes that were acknowledged are not in it"
        elif mark.generation and mark.generation != store.generation:
            why = "it is of an earlier life of this home"
        elif given > store.newest:
            why = f"it knows no job after {store.newest}, and there was job {given}"
        else:
            return None
        epochs = [int(one) for name in names for one in os.listdir(self.path / name) if one.isdecimal()]
        return NewLife(uuid.uuid4().hex, max(given, store.newest), max(epochs, default=0), why, store.newest)

    def follow(self, store: SqlStore) -> Callable[[], None]:
        """Mark it as this store's, and from now on after each transaction; call what is returned at the end."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        generation = store.generation
        draft = self.path / f".{_MARK}"
        draft.touch(mode=0o600)
        file = os.open(draft, os.O_WRONLY | os.O_CLOEXEC)
        flushed = 0.0

        def note() -> None:
            nonlocal flushed
            with contextlib.suppress(OSError):
                os.pwrite(file, _Mark(store.identity, generation, store.commits, store.newest).text().encode("ascii"), 0)
                if time.monotonic() > flushed + _FLUSH:
                    os.fdatasync(file)
                    flushed = time.monotonic()

        def end() -> None:
            store.committed = lambda: None
            with contextlib.suppress(OSError):
                os.fdatasync(file)
            os.close(file)

        os.ftruncate(file, 0)
        note()
        os.fsync(file)
        draft.replace(self.path / _MARK)
        store.committed = note
        return end

    def newest(self) -> int:
        """The highest number of a job that has a folder here, or that its mark knows."""
        return max([self.mark.newest, *map(number_of, self._names())])

    def _names(self) -> list[str]:
        """The ids of jobs that have a folder."""
        return [name for name in (os.listdir(self.path) if self.path.is_dir() else ()) if number_of(name)]

    def running(self) -> list[str]:
        """Jobs with a keeper that still runs."""
        return [job.name for job in self._jobs() if any(is_locked(lock) for lock in job.glob("*/lock"))]

    def aside(self) -> Path:
        """A name beside it that is free."""
        number = 1
        while (found := self.path.with_name(f"{self.path.name}-set-aside-{number}")).exists():
            number += 1
        return found

    def _jobs(self) -> list[Path]:
        return sorted(one for one in self.path.glob("*") if one.is_dir())
