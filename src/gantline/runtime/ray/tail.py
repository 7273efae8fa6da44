"""Reads a log by offset from its first byte on, while its keeper writes it and drops what is too old (`local.output.Log`)."""

from __future__ import annotations

import os
from pathlib import Path

from gantline.runtime.local.kept import KeptOutput

MOST = 1 << 20  # bytes in one piece


class Tail:
    """One log in its folder. Offsets count all bytes that were ever written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._dropped = 0  # bytes that are not kept any more
        self._older = 0  # bytes of the half before
        self._file = -1  # which file is the present half

    @property
    def end(self) -> int:
        """How many bytes have been written."""
        try:
            now = os.stat(self.folder / "log")
        except OSError:
            return self._dropped + self._older
        if self._file not in (-1, now.st_ino):
            self._dropped += self._older
            self._older = _size(self.folder / "log.1")
        self._file = now.st_ino
        return self._dropped + self._older + now.st_size

    def read(self, offset: int) -> tuple[int, bytes]:
        """What follows that offset, and the offset behind it; older bytes that are gone are passed over."""
        if self.end <= offset:
            return offset, b""
        kept = KeptOutput(self.folder)
        try:
            start = max(offset, self._dropped)
            data = kept.read(start - self._dropped, MOST)
        finally:
            kept.close()
        return start + len(data), data


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
