"""A job's output: captured from its ranks, bounded on disk, and what is kept of it. Keepers import this: no installed package."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from gantline.core.errors import RefusedError
from gantline.live.runners.local.files import private, read_json
from gantline.live.runners.runner_events import KeptIncarnation


def first_byte(path: str, older: os.stat_result | None, newer: os.stat_result | None) -> int | None:
    """The offset of the first byte that is kept, of all that were written; None: the halves have changed meanwhile.

    ``log.base`` says of one of the two files, by the number of its inode, how many bytes had been written before it.
    """
    try:
        with open(path + ".base", encoding="ascii") as file:
            inode, base = map(int, file.read().split())
    except (OSError, ValueError):
        return 0  # none was dropped
    if older is not None and older.st_ino == inode:
        return base
    if newer is not None and newer.st_ino == inode:
        return base - (older.st_size if older is not None else 0)
    return None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=False)
    except OSError:
        return None


class Log:
    """Output, bounded: when a half is full it becomes ``log.1`` and the one before it is gone."""

    def __init__(self, path: str, most: int) -> None:
        self.path, self.half = path, max(int(most) // 2, 4096)
        self.file = open(path, "ab", buffering=0, opener=private)  # noqa: SIM115  it stays open
        self.size = self.file.tell()
        older = _status(path + ".1")
        self.base = (first_byte(path, older, os.fstat(self.file.fileno())) or 0) + (older.st_size if older is not None else 0)
        self.lost = 0  # bytes that could not be written
        self._gap = 0  # of them those since the last that could

    def write(self, data: bytes) -> None:
        try:
            self._note_gap()
            if self.size + len(data) > self.half and self.size:
                self._turn()
            written = self.file.write(data) or 0
            self.size += written
            if written < len(data):
                self._lose(len(data) - written)
        except OSError:
            self._lose(len(data))  # the disk is full: the job goes on

    def _turn(self) -> None:
        """Begin the next half."""
        with contextlib.suppress(OSError):  # on a full disk a reader counts from the first byte that is kept
            with open(self.path + ".base.new", "w", encoding="ascii", opener=private) as file:
                file.write(f"{os.fstat(self.file.fileno()).st_ino} {self.base}")
            os.replace(self.path + ".base.new", self.path + ".base")
        self.file.close()
        os.replace(self.path, self.path + ".1")
        self.file = open(self.path, "ab", buffering=0, opener=private)  # noqa: SIM115
        self.base, self.size = self.base + self.size, 0

    def close(self) -> int:
        """No more comes; how many bytes are lost."""
        with contextlib.suppress(OSError):
            self._note_gap()
            self.file.close()
        return self.lost

    def _note_gap(self) -> None:
        if self._gap:
            self.file.write(b"\ngantline: %d bytes of output were lost here: the disk was full\n" % self._gap)
            self._gap = 0

    def _lose(self, count: int) -> None:
        self.lost += count
        self._gap += count


class Lines:
    """Lines of several ranks in one log, each with the number of its rank before it; the beginning of a line waits for its end."""

    def __init__(self, log: Log, rank_of: Callable[[int], int]) -> None:
        self.log, self.rank_of = log, rank_of
        self.numbered = False  # the output of a single rank is written as it comes
        self.begun: dict[int, bytes] = {}  # by process

    def write(self, process: int, data: bytes) -> None:
        """Add output of a process; empty: there will be no more."""
        if not self.numbered:
            if data:
                self.log.write(data)
            return
        text = self.begun.pop(process, b"") + data
        lines = text.splitlines(keepends=True)
        if data and lines and not lines[-1].endswith(b"\n") and len(lines[-1]) < 65536:
            self.begun[process] = lines.pop()
        if lines:
            self.log.write(b"".join(b"[%d] %s" % (self.rank_of(process), one) for one in lines))


# What is kept of jobs in a home: ``jobs/ID/EPOCH/log`` is the output of one incarnation, with ``log.1`` for what came before it
# and ``log.base`` for how many bytes came before both.

_LOOKS = 100  # at files that a job exchanges meanwhile
_ID = re.compile(r"^\d{1,18}(_\d{1,9})?$")


class KeptOutput:
    """What is kept of an incarnation's output, as one text in two files, of which only the requested part is read.

    Offsets count all bytes that were ever written, those that are kept no more among them.
    """

    def __init__(self, folder: Path) -> None:
        self.first = 0
        for _ in range(_LOOKS):
            self._files = [(one, os.fstat(one)) if one >= 0 else (one, None) for one in map(_opened, (folder / "log.1", folder / "log"))]
            found = first_byte(str(folder / "log"), *(status for _, status in self._files))
            if found is not None:
                self.first = found
                return
            self.close()
        raise RefusedError("its output changes faster than it can be read", where="logs", fix="ask again")

    @property
    def size(self) -> int:
        return self.first + sum(status.st_size for _, status in self._files if status is not None)

    def read(self, start: int, count: int) -> bytes:
        """So many bytes from there on, or from the first that is kept."""
        found, begin = b"", self.first
        for opened, status in self._files:
            size = 0 if status is None else status.st_size
            at = max(start - begin, 0)
            want = min(count - len(found), size - at)
            if want > 0:
                found += os.pread(opened, want, at)
            begin += size
        return found

    def close(self) -> None:
        for opened, _ in self._files:
            if opened >= 0:
                os.close(opened)


def _opened(path: Path) -> int:
    """The file, open; -1: there is none."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return -1


class KeptJobs:
    """The folders of jobs in a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "jobs"

    def incarnations(self, job: str) -> list[KeptIncarnation]:
        """Those of a job that have a folder, in order."""
        if not _ID.match(job):  # ids are the scheduler's own; anything else is no id and must not become a path
            return []
        folder = self.folder / job
        epochs = sorted(int(one.name) for one in folder.iterdir() if one.name.isdigit()) if folder.is_dir() else []
        return [self._kept(folder / str(epoch), epoch) for epoch in epochs]

    def output(self, job: str, epoch: int) -> KeptOutput:
        """The output of one of them."""
        return KeptOutput(self.folder / job / str(epoch))

    def jobs(self) -> set[str]:
        """Jobs that have a folder."""
        return {one.name for one in self.folder.iterdir() if one.is_dir()} if self.folder.is_dir() else set()

    def remove(self, job: str) -> None:
        """Nothing of the job is kept."""
        if _ID.match(job):
            shutil.rmtree(self.folder / job, ignore_errors=True)

    def _kept(self, folder: Path, epoch: int) -> KeptIncarnation:
        state = read_json(str(folder / "state.json"))
        known = state if isinstance(state, dict) else {}
        lost = known.get("lost", 0)
        return KeptIncarnation(epoch, str(known.get("why") or ""), lost if isinstance(lost, int) else 0)
