"""What is kept of jobs in a home: ``jobs/ID/EPOCH/log`` is the output of one incarnation, with ``log.1`` for what came before it
and ``log.base`` for how many bytes came before both."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from gantline.core.errors import RefusedError
from gantline.live.runners.local.files import read_json
from gantline.live.runners.local.output import first_byte
from gantline.live.runners.runner_events import KeptIncarnation

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
