"""Files that commands write: refused before the work begins, never half-written."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import polars.selectors as cs

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.lab.whole_files import write_whole
from gantline.traces.write import FORMATS, write_frame


def check_table_target(path: Path | None, option: str, source: str | Path = "") -> None:
    """Refuse a name that no table can be written to, or that of what is read, before hours of simulation are spent."""
    if path is None:
        return
    if source and path.exists() and Path(source).exists() and path.samefile(source):
        raise RefusedError(f"'{path}' is what is read", where=option, fix="choose another name: it would be lost")
    if not path.name.endswith(FORMATS):
        raise UsageError(f"'{path.name}' names no known format", where=option, fix="end it in " + ", ".join(FORMATS))
    check_folder(path, option)


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a file whose folder does not exist or cannot be written to."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise NotFoundError(f"no folder '{path.parent}'", where=option, fix="create it first")
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder", where=option, fix="name a file in it")
    if not os.access(path.parent, os.W_OK):
        raise RefusedError(f"the folder '{path.parent}' may not be written to", where=option, fix="choose another one")


def check_page_target(path: Path | None, option: str) -> None:
    """Refuse a name that is none of a page."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder", where=option, fix="name an .html file in it")
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"'{path.name}' is not the name of a page", where=option, fix="end it in .html")


def check_run_target(path: Path | None, replace: bool) -> None:
    """Refuse to write a run over something else."""
    if path is None or replace or not path.exists():
        return
    if not path.is_dir() or any(path.iterdir()):
        raise RefusedError(f"'{path}' exists already", where="--out", fix="choose another name, or add --replace")


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame by the ending of its name; what is not known is left empty."""
    write_frame(frame.with_columns(cs.float().fill_nan(None)), path)


def write_lines(lines: Iterable[str], path: Path) -> None:
    """Write lines of text, compressed if the name ends in .gz."""

    def fill(draft: Path) -> None:
        with draft.open("wb") as raw:
            packed = gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) if path.name.endswith(".gz") else raw
            for line in lines:
                packed.write(line.encode() + b"\n")
            if packed is not raw:
                packed.close()

    write_whole(path, fill)
