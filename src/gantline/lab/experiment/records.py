"""Results of single runs in a folder, found by the hash of their setting.

    HASH.json        how it ended, its setting, its summary and its metrics
    HASH.jobs.arrow  what happened to each job, a stream of Arrow
    HASH/            the whole run, when it was asked to be kept

The record is written last, so a result that has one is whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gantline
from gantline.core.errors import RefusedError, UsageError
from gantline.core.json_reader import damaged, loads
from gantline.lab.experiment.digest import program_digest
from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics import Measuring, tracked_window
from gantline.lab.report.run_warnings import doubts_of
from gantline.lab.report.rundir import plain, write_run
from gantline.lab.whole_files import DiskFullError, is_full, write_json, write_stream

FORMAT = "gantline-result"
VERSION = 1
_DIGITS = 20


@dataclass(frozen=True)
class Record:
    """A stored result."""

    hash: str
    state: str
    program: str
    message: str
    summary: dict[str, Any]
    measures: dict[str, float | None]
    jobs_file: Path

    @property
    def current(self) -> bool:
        """Whether it is a result of this very program, so that it need not be computed again."""
        return self.state == DONE and self.program == program_digest() and self.jobs_file.is_file()

    def jobs(self) -> pl.DataFrame:
        """What happened to each job."""
        try:
            return pl.read_ipc_stream(self.jobs_file)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise UsageError(
                f"is damaged ({str(error).splitlines()[0]})", where=str(self.jobs_file), fix="remove it and run again"
            ) from None


def store_result(folder: Path, key: str, run: RunLike, *, keep_run: bool) -> dict[str, Any]:
    """Measure a run over the tracked jobs and store it; returns what a progress line may show."""
    window = tracked_window(run.summary)
    found, steady = Measuring(window).with_steadiness(run)
    measures, summary = plain(found), plain(run.summary)
    if keep_run:
        try:
            write_run(run, kept_run(folder, key), replace=True)
        except OSError as error:
            if is_full(error):
                raise DiskFullError("the disk is full", where=str(folder), fix="make room and run the same command again") from None
            raise
    jobs = run.jobs
    tracked = np.zeros(jobs.height, dtype=bool)
    tracked[window.rows(jobs["arrival"].to_numpy())] = True
    write_stream(_jobs_file(folder, key), jobs.with_columns(pl.Series("tracked", tracked)))
    fields = {**summary, "steady": steady.steady, "steadiness": str(steady), "from_empty": steady.from_empty}
    _store(folder, key, DONE, summary={**fields, "doubts": "; ".join(doubts_of(fields))}, measures=measures)
    return {"log_hash": run.summary["log_hash"], "jct_mean": measures["jct_mean"]}


def store_failure(folder: Path, outcome: Outcome, setting: dict[str, Any]) -> None:
    """Store that and why a run failed."""
    _store(folder, outcome.hash, FAILED, message=outcome.message, detail=outcome.detail, summary={"setting": setting}, measures={})


def read_record(folder: Path, key: str) -> Record | None:
    """The result stored under the hash, if there is one; refuses what a newer version wrote."""
    file = folder / f"{key[:_DIGITS]}.json"
    if not key.isalnum() or not file.is_file():
        return None
    try:
        found = loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not whole, so not written by us: run again
    if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("hash") != key:
        return None
    with damaged(str(file)):
        if found.get("schema_version", 0) > VERSION:
            raise RefusedError(
                f"was written by a newer Gantline ({found.get('version')})", where=str(file), fix="upgrade gantline to read it"
            )
        summary, measures = dict(found["summary"]), dict(found["measures"])
        return Record(key, found["state"], found["program"], str(found["message"]), summary, measures, _jobs_file(folder, key))


def kept_run(folder: Path, key: str) -> Path:
    """Where the whole run lies when it was kept."""
    return folder / key[:_DIGITS]


def _jobs_file(folder: Path, key: str) -> Path:
    return folder / f"{key[:_DIGITS]}.jobs.arrow"


def _store(folder: Path, key: str, state: str, *, message: str = "", detail: str = "", **parts: dict[str, Any]) -> None:
    head = {"format": FORMAT, "schema_version": VERSION, "version": gantline.__version__, "program": program_digest()}
    head |= {"hash": key, "state": state}
    write_json(folder / f"{key[:_DIGITS]}.json", {**head, "message": message, "detail": detail, **parts})


# How one run of an experiment ended; a failure is a result too.

DONE, FAILED, DISK_FULL = "done", "failed", "disk-full"


@dataclass(frozen=True)
class Outcome:
    """How a task ended: `done`, `failed` with a message, or `disk-full`."""

    hash: str
    state: str
    message: str = ""
    detail: str = ""
    seconds: float = 0.0
    facts: Mapping[str, object] = field(default_factory=dict)

    def to_line(self) -> str:
        """The outcome as a line of JSON, which a worker process writes."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def read(cls, line: str) -> Outcome:
        """The outcome that a worker process wrote."""
        return cls(**json.loads(line))
