"""Files that appear whole or not at all: written under another name, flushed to disk, then renamed."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from gantline.core.errors import RefusedError

DRAFT = ".part"
"""How the names of files end that are still being written."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFullError(RefusedError):
    """There is no room for a result; whatever was finished before stays."""


def write_json(path: Path, value: Any) -> Path:
    """Write a value as JSON on one line: with indentation it would take four times as long."""
    return write_text(path, json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> Path:
    """Write a text."""
    return write_whole(path, lambda draft: draft.write_bytes(text.encode()))


def write_frame(path: Path, frame: pl.DataFrame) -> Path:
    """Write a frame as Parquet; numbers that are not known are null, which every reader understands."""
    known = frame.with_columns(cs.float().fill_nan(None))
    return write_whole(path, lambda draft: known.write_parquet(draft))


def write_stream(path: Path, frame: pl.DataFrame) -> Path:
    """Write a frame as a stream of Arrow, as it is: of a small frame a fifth of what Parquet takes.

    A sweep writes one for every run, which may take less time than its file; most are never read, and then whole.
    """
    return write_whole(path, lambda draft: frame.write_ipc_stream(draft, compression="lz4"))


def remove_drafts(folder: Path) -> None:
    """Remove what an interrupted writer left behind."""
    for draft in folder.glob(f".*{DRAFT}"):
        draft.unlink(missing_ok=True)


def write_whole(path: Path, fill: Callable[[Path], object]) -> Path:
    """Let `fill` write a draft, and give it its name when it is complete."""
    handle, name = -1, ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=DRAFT, dir=path.parent)
        fill(Path(name))
        os.chmod(name, 0o644)  # mkstemp keeps others out; a result is there to be read
        os.fsync(handle)
        os.replace(name, path)
    except BaseException as error:
        if name:
            Path(name).unlink(missing_ok=True)
        if is_full(error):
            raise DiskFullError("the disk is full", where=str(path.parent), fix="make room and run the same command again") from None
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    return path


def is_full(error: BaseException) -> bool:
    """Whether the error means that there is no room; polars has it only in its message."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return isinstance(error, (OSError, pl.exceptions.PolarsError)) and "No space left" in str(error)
