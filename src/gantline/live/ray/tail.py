"""Reads a log by offset while its keeper writes it and drops what is too old (`local.output.Log`)."""

from __future__ import annotations

from pathlib import Path

from gantline.live.local.kept import KeptOutput

MOST = 1 << 20  # bytes in one piece


class Tail:
    """One log in its folder. Offsets count all bytes that were ever written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def end(self) -> int:
        """How many bytes have been written."""
        return self._piece(0, 0)[0]

    def read(self, offset: int) -> tuple[int, bytes]:
        """What follows that offset, and the offset behind it; older bytes that are gone are passed over."""
        end, data = self._piece(offset, MOST)
        return (end, data) if data else (offset, b"")

    def _piece(self, offset: int, count: int) -> tuple[int, bytes]:
        kept = KeptOutput(self.folder)
        try:
            data = kept.read(offset, count)
            return (max(offset, kept.first) + len(data) if count else kept.size), data
        finally:
            kept.close()
