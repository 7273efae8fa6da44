"""The folder of a sweep: what is to be run, what has been, and a lock against two sweeps at once."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import gantline
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.fields import plain_values
from gantline.core.json_reader import damaged, loads
from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.records import Record, kept_run, read_record
from gantline.lab.report.metrics import METRICS
from gantline.lab.whole_files import remove_drafts, write_frame, write_json

FORMAT = "gantline-sweep"
VERSION = 1
_WRITTEN = (".lock", "runs", "by-name", "figures")


@dataclass(frozen=True)
class ExperimentFolder:
    """A folder that belongs to this process while it is open."""

    path: Path

    @property
    def runs(self) -> Path:
        """Where the results of single runs lie."""
        return self.path / "runs"

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[ExperimentFolder]:
        """Make or take over the folder; refuse one that is no sweep's, is newer, or is being written."""
        _check_kind(path)
        for name in _WRITTEN:
            if (path / name).is_symlink():
                raise RefusedError(f"'{name}' is a link: results would be written elsewhere", where=str(path), fix="remove that link")
        try:
            (path / "runs").mkdir(parents=True, exist_ok=True)
            handle = os.open(path / ".lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise UsageError(f"cannot be written: {os.strerror(error.errno or 0)}", where=str(path)) from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RefusedError("another sweep is writing here", where=str(path), fix="wait for it or choose another folder") from None
            place = cls(path)
            remove_drafts(place.runs)
            try:
                yield place
            finally:
                remove_drafts(place.runs)
        finally:
            os.close(handle)

    def write_manifest(self, cases: Sequence[Case]) -> None:
        """Write down what is to be run."""
        listed = [
            {"name": case.name, "policy": case.policy, "hash": case.hash, "setting": case.setting.to_dict()}
            | {"axes": plain_values(case.axes), "parameters": plain_values(case.parameters)}
            for case in cases
        ]
        head = {"format": FORMAT, "schema_version": VERSION, "version": gantline.__version__}
        write_json(self.path / "sweep.json", {**head, "cases": listed})

    def write_names(self, cases: Sequence[Case]) -> None:
        """Links with names beside the runs that were kept whole, which lie under their hashes."""
        place = self.path / "by-name"
        for case in cases:
            target, link = kept_run(self.runs, case.hash), place / slug(case.name)
            if target.is_dir() and not link.is_symlink():
                try:
                    place.mkdir(exist_ok=True)
                    link.symlink_to(Path("..") / "runs" / target.name, target_is_directory=True)
                except OSError:  # a file system without links
                    return

    def is_done(self, key: str, with_run: bool) -> bool:
        """Whether a result of this program is there (and the whole run, if it is asked for)."""
        record = read_record(self.runs, key)
        return record is not None and record.current and (not with_run or kept_run(self.runs, key).is_dir())

    def record(self, key: str) -> Record:
        """The result of a case that has ended."""
        record = read_record(self.runs, key)
        if record is None:
            raise UsageError(f"the result of {key[:12]} has vanished", where=str(self.runs), fix="run the same command again")
        return record

    def write_results(self, results: pl.DataFrame) -> None:
        """Write the table of all cases."""
        write_frame(self.path / "results.parquet", results)


def read_results(path: Path) -> pl.DataFrame:
    """The table of a sweep that has ended; what is no sweep, or a newer one, is refused."""
    if not path.exists():
        raise NotFoundError("there is no such folder", where=str(path), fix="name the folder of a sweep")
    _check_kind(path, "name the folder that a sweep or a comparison wrote")
    file = path / "results.parquet"
    if not file.is_file():
        raise UsageError("the sweep has not ended", where=str(path), fix="run the same command again to go on")
    try:
        return pl.read_parquet(file).with_columns(pl.col([metric.key for metric in METRICS]).fill_null(float("nan")))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UsageError(f"is damaged ({str(error).splitlines()[0]})", where=str(file), fix="run the sweep again") from None


def is_sweep(path: Path) -> bool:
    """Whether this is the folder of a sweep."""
    return (path / "sweep.json").is_file()


def runs_in(path: Path) -> list[Path]:
    """The runs that a sweep kept whole, in the order of its cases; any other folder is a run itself."""
    if not is_sweep(path):
        return [path]
    _check_kind(path)
    with damaged(str(path / "sweep.json")):
        hashes = [str(case["hash"]) for case in loads((path / "sweep.json").read_text(encoding="utf-8"))["cases"]]
    found = [kept for one in hashes if one.isalnum() and (kept := kept_run(path / "runs", one)).is_dir()]
    if not found:
        raise RefusedError("this sweep kept no runs", where=str(path), fix="run the same command again with --keep-runs")
    return list(dict.fromkeys(found))


def slug(name: str) -> str:
    """A name that every file system takes: ``las service=gpu-time load=0.9`` becomes ``las-service=gpu-time-load=0.9``."""
    return re.sub(r"[^\w.=,+-]+", "-", name).strip("-.") or "run"


def _check_kind(path: Path, fix: str = "choose another name") -> None:
    """Refuse to mix results with other things, or with what this version does not understand."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    file = path / "sweep.json"
    if not path.is_dir() or not (file.is_file() or (path / ".lock").is_file()):
        raise RefusedError("exists and is not the folder of a sweep", where=str(path), fix=fix)
    try:
        head = loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError):
        head = {}
    version = head.get("schema_version") if isinstance(head, dict) else None
    if isinstance(version, int) and version > VERSION:
        fix = "upgrade gantline, or choose another folder"
        raise RefusedError(f"was written by a newer Gantline ({head.get('version')})", where=str(path), fix=fix)
