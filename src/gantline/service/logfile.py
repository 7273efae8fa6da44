"""Pieces of a job's output from the folder of one of its incarnations: ``jobs/ID/EPOCH/log``, with ``log.1`` for what came before it."""

from __future__ import annotations

import codecs
import json
import os
import re
from pathlib import Path
from typing import Any

from gantline.core.errors import NotFoundError

MOST = 1 << 20
_LAST_LINES = 60  # of an incarnation that broke: enough for a traceback
_BLOCK = 1 << 16  # bytes that are read at a time, from the end, when last lines are searched
_FARTHEST = 8 * MOST  # bytes from the end within which the beginning of a line is searched
_ID = re.compile(r"^\d{1,18}(_\d{1,9})?$")


def epochs_of(home: Path, job: str) -> list[int]:
    """The incarnations of a job that have a folder, in order."""
    if not _ID.match(job):  # ids are the scheduler's own; anything else is no id and must not become a path
        return []
    folder = home / "jobs" / job
    return sorted(int(one.name) for one in folder.iterdir() if one.name.isdigit()) if folder.is_dir() else []


class KeptOutput:
    """What is kept of an incarnation's output, as one text in two files, of which only the requested part is read."""

    def __init__(self, folder: Path | None) -> None:
        self._files: list[tuple[int, int]] = []  # where it is open, and how long it is
        for name in ("log.1", "log") if folder is not None else ():
            try:
                opened = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)  # type: ignore[operator]
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

    def last_lines(self, count: int) -> int:
        """Where the last lines begin."""
        end = self.size
        if count == 0:
            return end
        at = end - (end > 0 and self.read(end - 1, 1) == b"\n")
        least = max(0, end - _FARTHEST)
        while at > least:
            first = max(least, at - _BLOCK)
            block = self.read(first, at - first)
            place = len(block)
            while (place := block.rfind(b"\n", 0, place)) >= 0:
                count -= 1
                if count == 0:
                    return first + place + 1
            at = first
        return least

    def close(self) -> None:
        for opened, _ in self._files:
            os.close(opened)


def read_log(
    home: Path, job: str, *, epoch: int | None = None, offset: int = 0, tail: int | None = None, rank: int | None = None, limit: int = MOST
) -> dict[str, Any]:
    """Text from an offset on, and where to go on. An offset counts from the first byte that is kept."""
    known = epochs_of(home, job)
    if epoch is not None and epoch not in known:
        raise NotFoundError(
            f"job '{job}' has no incarnation {epoch}", where="epoch", fix=f"it has {known}" if known else "it has not started"
        )
    chosen = epoch if epoch is not None else (known[-1] if known else None)
    kept = KeptOutput(None if chosen is None else home / "jobs" / job / str(chosen))
    try:
        size = kept.size
        start = kept.last_lines(tail) if tail is not None else min(offset, size)
        piece = kept.read(start, limit)
    finally:
        kept.close()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    rest = len(decoder.getstate()[0])  # bytes of a character that ends in the next piece, if there is one
    if rest and start + len(piece) < size:
        piece = piece[:-rest]
    elif rest:
        text += decoder.decode(b"", final=True)
    if rank is not None:
        text = "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"[{rank}] "))
    return {"epoch": chosen, "epochs": known, "text": text, "offset": start, "next": start + len(piece), "size": size}


def lost_output(home: Path, job: str) -> int:
    """Bytes of its output that could not be written, of all incarnations together."""
    found = 0
    for epoch in epochs_of(home, job):
        try:
            found += int(json.loads((home / "jobs" / job / str(epoch) / "state.json").read_text(encoding="utf-8")).get("lost", 0))
        except (OSError, ValueError, AttributeError, TypeError):
            continue
    return found


def broken_before(home: Path, job: str) -> dict[str, Any] | None:
    """Why the incarnation before the newest failed, with its last lines; None: it did not fail, or there is none."""
    known = epochs_of(home, job)
    if len(known) < 2:
        return None
    try:
        why = json.loads((home / "jobs" / job / str(known[-2]) / "state.json").read_text(encoding="utf-8")).get("why", "")
    except (OSError, ValueError, AttributeError):
        return None
    if not why:
        return None
    return {"epoch": known[-2], "why": str(why), "text": read_log(home, job, epoch=known[-2], tail=_LAST_LINES)["text"]}
