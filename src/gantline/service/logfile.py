"""Pieces of a job's output from the folder of one of its incarnations: ``jobs/ID/EPOCH/log``, with ``log.1`` for what came before it."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from typing import Any

from gantline.core.errors import NotFoundError

MOST = 1 << 20
_LAST_LINES = 60  # of an incarnation that broke: enough for a traceback
_ID = re.compile(r"^\d{1,18}(_\d{1,9})?$")


def epochs_of(home: Path, job: str) -> list[int]:
    """The incarnations of a job that have a folder, in order."""
    if not _ID.match(job):  # ids are the scheduler's own; anything else is no id and must not become a path
        return []
    folder = home / "jobs" / job
    return sorted(int(one.name) for one in folder.iterdir() if one.name.isdigit()) if folder.is_dir() else []


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
    data = b"" if chosen is None else _kept(home / "jobs" / job / str(chosen))
    start = _last_lines(data, tail) if tail is not None else min(offset, len(data))
    piece = data[start : start + limit]
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    rest = len(decoder.getstate()[0])  # the beginning of a letter, whose end is in the next piece, if there is one
    if rest and start + len(piece) < len(data):
        piece = piece[:-rest]
    elif rest:
        text += decoder.decode(b"", final=True)
    if rank is not None:
        text = "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"[{rank}] "))
    return {"epoch": chosen, "epochs": known, "text": text, "offset": start, "next": start + len(piece), "size": len(data)}


def broken_before(home: Path, job: str) -> dict[str, Any] | None:
    """Why the incarnation before the newest ended although nobody wanted it to, with its last lines; None: it did not, or there is none."""
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


def _kept(folder: Path) -> bytes:
    found = b""
    for name in ("log.1", "log"):
        try:
            found += (folder / name).read_bytes()
        except OSError:
            continue
    return found


def _last_lines(data: bytes, count: int) -> int:
    """Where the last lines begin."""
    if count == 0:
        return len(data)
    end = len(data) - data.endswith(b"\n")
    for _ in range(count):
        end = data.rfind(b"\n", 0, end)
        if end < 0:
            return 0
    return end + 1
