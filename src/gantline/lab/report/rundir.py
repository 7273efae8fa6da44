"""A run directory: the frames of a run as Parquet files beside a summary that says where they come from.

    run/
      summary.json         schema version, rows of each file, provenance (version, seed, trace hash, parameters, ...)
      jobs.parquet         a row per job
      allocations.parquet  a row per gang and interval, devices as a list
      events.parquet       what happened, in order
      series.parquet       queue and GPUs over time

It appears whole or not at all: everything is written into a temporary directory beside it, flushed to disk and renamed.

A number that is not known is NaN in memory and null on disk. Parquet's statistics leave NaN out, so readers that trust
them believe that there is none and drop the filter ``not isnan(finish)`` (DuckDB 2.0, its issue 25521). Every reader's
mean skips nulls.
"""

from __future__ import annotations

import glob
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.json_reader import loads
from gantline.lab.report.frames import SCHEMAS, RunLike, StoredRun, check_frames
from gantline.lab.report.service_run import is_service, read_service

FORMAT = "gantline-run"
VERSION = 2
_HELD = 2  # the version from which on held time is a column, and GPU-hours and queueing come from it
_MOST_ROWS = 100  # in a byte of a file: more is a claim that no run makes
FLOATS = cs.float()
_PLAIN = (str, int, bool, type(None))


def write_run(run: RunLike, path: Path, *, replace: bool = False) -> Path:
    """Write the run to ``path``, which must not exist yet unless ``replace`` allows to take a run's place."""
    check_frames(run)
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not replace:
            raise RefusedError("exists already", where=str(path), fix="choose another name or ask to replace it")
        if not is_run(path):
            raise RefusedError("exists and is not a run directory", where=str(path), fix="choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_orphans(path)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.{os.getpid()}.", dir=path.parent))
    try:
        draft.chmod(0o755)  # mkdtemp denies access to others; a result should be readable
        rows = {}
        for name in SCHEMAS:
            frame: pl.DataFrame = getattr(run, name)
            frame.with_columns(FLOATS.fill_nan(None)).write_parquet(draft / f"{name}.parquet", compression="zstd")
            rows[name] = frame.height
        head = {"format": FORMAT, "schema_version": VERSION, "rows": rows}
        text = json.dumps({**head, "summary": plain(run.summary)}, indent=2, ensure_ascii=False, allow_nan=False)
        (draft / "summary.json").write_text(text + "\n", encoding="utf-8")
        for file in draft.iterdir():
            _flush(file)
        _take_place(draft, path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return path


def read_run(path: Path) -> StoredRun:
    """Read a run back, or the past of a service from its folder.

    Refuses what is not a run, is incomplete, or was written by a newer version or one that counted differently.
    """
    path = Path(path)
    if is_service(path):
        return read_service(path)
    head = _read_head(path)
    frames = {}
    for name, schema in SCHEMAS.items():
        frame = _read_frame(path / f"{name}.parquet")
        missing = [column for column in schema if column not in frame.columns]
        if missing:
            raise UsageError(f"lacks the column {', '.join(missing)}", where=str(path / f"{name}.parquet"))
        if frame.height != head["rows"].get(name):
            raise UsageError(
                f"has {frame.height} rows where the summary counts {head['rows'].get(name)}",
                where=str(path / f"{name}.parquet"),
                fix="the directory was changed after it was written; run again",
            )
        frames[name] = frame
    return StoredRun(frames["jobs"], frames["allocations"], frames["events"], frames["series"], head["summary"])


def is_run(path: Path) -> bool:
    """Whether the directory is marked as a run, of any version."""
    file = Path(path) / "summary.json"
    try:
        head = loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and head.get("format") == FORMAT


def plain(value: Any) -> Any:
    """A value that JSON can hold: NumPy scalars become numbers, what is not finite becomes null, the rest text."""
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind in _PLAIN:  # most are; checking for a mapping takes longer
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [plain(item) for item in items]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _read_head(path: Path) -> dict[str, Any]:
    file = path / "summary.json"
    again = "name the directory that a simulation wrote"
    if not path.exists():
        raise NotFoundError("there is no such run", where=str(path), fix=again)
    if not file.is_file():
        raise UsageError("is not a run directory: it has no summary.json", where=str(path), fix=again)
    try:
        head = loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"is not readable as JSON ({error})", where=str(file), fix="run again") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise UsageError("is not the summary of a run", where=str(file), fix=again)
    version = head.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise UsageError(f"has the schema version {version!r}", where=str(file), fix=f"this program reads 1 to {VERSION}")
    if version > VERSION:
        raise RefusedError(
            f"was written by a newer Gantline (schema version {version}, this one reads up to {VERSION})",
            where=str(path),
            fix="upgrade gantline to read it",
        )
    if version < _HELD:
        what = "was written by an older Gantline, which counted GPU-hours and queueing without the time that changes cost"
        raise RefusedError(what, where=str(path), fix="run again")
    if not isinstance(head.get("rows"), dict) or not isinstance(head.get("summary"), dict):
        raise UsageError("lacks 'rows' or 'summary'", where=str(file), fix="run again")
    return head


def _read_frame(file: Path) -> pl.DataFrame:
    if not file.is_file():
        raise UsageError(f"the run is incomplete: {file.name} is missing", where=str(file.parent), fix="run again")
    try:
        rows = pl.scan_parquet(file).select(pl.len()).collect().item()
        if rows > _MOST_ROWS * (file.stat().st_size + 1):
            raise UsageError(f"claims to hold {rows} rows", where=str(file), fix="run again")
        return pl.read_parquet(file).with_columns(FLOATS.fill_null(math.nan))
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else "unreadable"
        raise UsageError(f"is damaged ({first})", where=str(file), fix="run again") from None


def _remove_orphans(path: Path) -> None:
    """Remove drafts of this run left by killed processes; those of a running process stay."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*.*"):
        owner = draft.name.removeprefix(f".{path.name}.").partition(".")[0]
        if draft.is_dir() and owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(draft, ignore_errors=True)


def _flush(file: Path) -> None:
    """Force a file, or the entries of a directory, to disk before its name becomes visible."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_place(draft: Path, path: Path) -> None:
    """Rename the draft to its name; a run that was there is set aside until the new one stands."""
    _flush(draft)
    if path.exists() and any(path.iterdir()):
        aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        path.rename(aside)
        draft.rename(path)
        shutil.rmtree(aside)
    else:
        draft.rename(path)
    _flush(path.parent)
