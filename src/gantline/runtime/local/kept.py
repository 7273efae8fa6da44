"""What is kept of jobs in a home: ``jobs/ID/EPOCH/log`` is the output of one incarnation, with ``log.1`` for what came before it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from gantline.runtime.local.files import read_json
from gantline.runtime.roll_call import KeptIncarnation

_ID = re.compile(r"^\d{1,18}(_\d{1,9})?$")


class KeptOutput:
    """What is kept of an incarnation's output, as one text in two files, of which only the requested part is read."""

    def __init__(self, folder: Path) -> None:
        self._files: list[tuple[int, int]] = []  # where it is open, and how long it is
        for name in ("log.1", "log"):
            try:
                opened = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                continue
            self._files.append((opened, os.fstat(opened).st_size))

    @property
    def size(self) -> int:
        return sum(size for _, size in self._files)

    def read(self, start: int, count: int) -> bytes:
        """So many bytes from there on."""
        found, begin = b"", 0
        for opened, size in self._files:
            at, want = max(start - begin, 0), min(count - len(found), size - max(start - begin, 0))
            if want > 0:
                found += os.pread(opened, want, at)
            begin += size
        return found

    def close(self) -> None:
        for opened, _ in self._files:
            os.close(opened)


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
