"""Jobs that have left the store, in Parquet files below the home: what each was, what became of it, and its events.

A part is replaced whole or not at all, and is on the disk before the store forgets its jobs. A service that is killed in between archives
them again: of several rows with one id the last counts. Times are seconds since 1970, so that the files can be read by themselves.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gantline.core.errors import RefusedError
from gantline.live.jobs.launch import Launch
from gantline.live.scheduler.job_registry import Job
from gantline.live.scheduler.view import JobView, old_view

_PART = 20_000  # jobs in a file, unless an array has more
_TEXT = ("id", "name", "user", "queue", "state", "reason", "why", "array")
_WHOLE = ("number", "gpus", "min_gpus", "max_gpus", "exit_code", "epoch", "failures", "resizes")
_REAL = ("priority", "submitted", "started", "ended", "service")


class Archive:
    """The folder ``archive`` of a home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # --- writing ----------------------------------------------------------------------------------------------------------
    def add(self, records: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], born: float) -> None:
        """Add jobs as the store has them, each with its events; `born` is when the service's clock began, in seconds since 1970."""
        fresh = pl.DataFrame([_row(record, events, born) for record, events in records], schema=_schema())
        parts = self._parts()
        target = self.folder / f"jobs-{len(parts) + 1:06d}.parquet"
        if parts and (known := _read(parts[-1])).height + fresh.height <= _PART:
            fresh, target = pl.concat([known, fresh]).unique("id", keep="last", maintain_order=True), parts[-1]
        self.folder.mkdir(mode=0o700, exist_ok=True)
        draft = target.with_name(f".{target.name}")
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))  # secrets of jobs are in there
        fresh.write_parquet(draft, compression="zstd")
        _flush(draft)
        draft.replace(target)
        _flush(self.folder)

    # --- reading ----------------------------------------------------------------------------------------------------------
    def frame(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        """All jobs, in the order in which they were archived; only some columns, where they are named."""
        wanted = list(dict.fromkeys(["id", *columns])) if columns else None
        parts = [_read(part, wanted) for part in self._parts()]
        empty = pl.DataFrame(schema={name: kind for name, kind in _schema().items() if wanted is None or name in wanted})
        return pl.concat([empty, *parts]).unique("id", keep="last", maintain_order=True)

    def __len__(self) -> int:
        return self.frame(("id",)).height

    def newest(self) -> int:
        """The highest number of a job; 0: there is none. A part that cannot be read is reported when somebody asks for its jobs."""
        found = 0
        for part in self._parts():
            with contextlib.suppress(RefusedError):
                found = max(found, *_read(part, ["number"])["number"])
        return found

    def jobs(self, ids: Sequence[str]) -> dict[str, tuple[JobView, dict[str, Any], list[dict[str, Any]]]]:
        """Those of these jobs that are here: as others see them, their records and their events. An array's number means its tasks."""
        found: dict[str, tuple[JobView, dict[str, Any], list[dict[str, Any]]]] = {}
        chosen = pl.col("id").is_in(list(ids)) | pl.col("array").is_in(list(ids))
        for part in self._parts():
            if _read(part, ["id", "array"]).filter(chosen).is_empty():
                continue
            rows = _read(part).filter(chosen).select("id", "record", "history")
            found |= {id: (_view(record), json.loads(record), json.loads(history)) for id, record, history in rows.iter_rows()}
        return found

    def views(self, filters: Mapping[str, Sequence[str]] | None = None) -> list[JobView]:
        """Jobs whose columns have one of the values given, in order of submission."""
        rows = self.frame((*(filters or {}), "submitted", "record"))
        for column, values in (filters or {}).items():
            rows = rows.filter(pl.col(column).is_in(list(values)))
        return [_view(record) for record in rows.sort("submitted", maintain_order=True)["record"]]

    def launches(self) -> dict[str, Launch]:
        """How each job was run."""
        return {id: Launch.from_json(json.loads(record)["launch"]) for id, record in self.frame(("record",)).select("id", "record").rows()}

    def records(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """What `add` was given."""
        for record, history in self.frame(("record", "history")).select("record", "history").iter_rows():
            yield json.loads(record), json.loads(history)

    def ended_before(self, wall: float) -> list[str]:
        """Ids of jobs that had ended by then."""
        return self.frame(("ended",)).filter(pl.col("ended") < wall)["id"].to_list()

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("jobs-*.parquet"))


def _row(record: Mapping[str, Any], events: Sequence[Mapping[str, Any]], born: float) -> dict[str, Any]:
    view = old_view(Job.from_record(record))
    wall = {name: None if at is None else born + at for name, at in (("started", view.started), ("ended", view.finished))}
    row = {name: getattr(view, name) for name in (*_TEXT, *_WHOLE, *_REAL) if name not in ("number", "submitted", "started", "ended")}
    row |= {"number": int(view.id.partition("_")[0]), "submitted": born + view.submitted, **wall}
    return {**row, "record": json.dumps(record), "history": json.dumps(list(events))}


def _view(record: str) -> JobView:
    return old_view(Job.from_record(json.loads(record)), is_archived=True)


def _schema() -> dict[str, Any]:
    kinds = {**dict.fromkeys(_TEXT, pl.String), **dict.fromkeys(_WHOLE, pl.Int64), **dict.fromkeys(_REAL, pl.Float64)}
    return {**kinds, "record": pl.String, "history": pl.String}


def _read(part: Path, columns: list[str] | None = None) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(part.read_bytes()), columns=columns)  # opened once: it may be replaced meanwhile
    except (pl.exceptions.PolarsError, OSError) as error:
        what = str(error).splitlines()[0] if str(error) else "unreadable"
        raise RefusedError(f"cannot be read: {what}", where=str(part), fix="restore it from a backup, or move it away") from None


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def totals_of(jobs: Sequence[Job], before: Mapping[str, Any]) -> dict[str, Any]:
    """What is counted of jobs that have left, with those that had left before: counters never go back."""
    found = {"jobs": 0, "newest": 0, "failures": 0, "waits": 0, "waited": 0.0, "ends": 0, "took": 0.0, "states": {}, **before}
    states = dict(found["states"])
    for job in jobs:
        states[job.state] = states.get(job.state, 0) + 1
        found["failures"] += job.failures
        for count, total, until in (("waits", "waited", job.started), ("ends", "took", job.finished)):
            if not math.isnan(until):
                found[count] += 1
                found[total] += until - job.submitted
    return {**found, "jobs": found["jobs"] + len(jobs), "states": states}


class Launches:
    """How each job of a store was run, by job; those in the archive are read when the first of them is asked for."""

    def __init__(self, records: Iterable[Mapping[str, Any]], archive: Archive | None = None) -> None:
        self._known = {str(job["id"]): Launch.from_json(job["launch"]) for job in records}
        self._archive = archive

    def __getitem__(self, job: str) -> Launch:
        if job not in self._known and self._archive is not None:
            self._known, self._archive = {**self._archive.launches(), **self._known}, None
        return self._known[job]
