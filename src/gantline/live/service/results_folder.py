"""A folder of results: runs and sweeps at any depth, found by name, read only when one is requested.

A folder may hold 100,000 of them: the list is made of names, and what is inside is read for the page that is shown.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gantline.core.errors import GantlineError, NotFoundError, UsageError, near
from gantline.core.json_reader import loads
from gantline.lab.experiment.folder import read_results
from gantline.lab.experiment.records import kept_run
from gantline.lab.report.frames import StoredRun
from gantline.lab.report.metrics import METRICS, measure, tracked_window
from gantline.lab.report.run_warnings import doubts_of_run
from gantline.lab.report.rundir import is_run, plain, read_run

_DEEPEST = 4  # folders within folders
_MOST = 200_000  # results that are listed
_KINDS = {"sweep.json": "sweep", "summary.json": "run"}
_FACTS = ("policy", "cluster", "gpus", "trace", "jobs", "seed", "end")
_PAUSE = 2.0  # seconds between two scans
_AT_HAND = 4  # runs of which the frames are cached


@dataclass(frozen=True)
class Result:
    """One result: its name is its path below the folder, '.' for the folder itself."""

    name: str
    kind: str  # run, sweep
    path: Path


class ResultsFolder:
    """Finds results; all requests share one listing until something in the folder changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: tuple[int, dict[str, Result]] | None = None  # with the time at which the folder itself last changed
        self._again = 0.0  # when to scan the folders below it again; later, if that takes long

    def results(self) -> dict[str, Result]:
        """All results by name, in order."""
        with self._lock:
            try:
                stamp = self.path.stat().st_mtime_ns
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise NotFoundError(f"cannot be read: {reason}", where=str(self.path), fix="name a folder of results") from None
            if self._known is None or self._known[0] != stamp or time.monotonic() > self._again:
                began = time.monotonic()
                self._known = stamp, {one.name: one for one in sorted(_found(self.path), key=lambda one: one.name)}
                self._again = time.monotonic() + max(_PAUSE, 20.0 * (time.monotonic() - began))
            return self._known[1]

    def result(self, name: str) -> Result:
        """One of them, or a run that a sweep among them has kept: 'SWEEP/runs/HASH'."""
        known = self.results()
        if name in known:
            return known[name]
        sweep, sign, run = name.rpartition("/runs/")
        kept = self.path / sweep / "runs" / run
        if sign and sweep in known and known[sweep].kind == "sweep" and run.isalnum() and is_run(kept):
            return Result(name, "run", kept)
        fix = near(name[:64], [*known][:2000]) if known else "the folder has none"
        raise NotFoundError(f"no result '{name[:64]}'", where="name", fix=fix)

    def run(self, name: str) -> StoredRun:
        """A run with its frames; those requested last are cached."""
        found = self.result(name)
        if found.kind != "run":
            raise UsageError(f"'{name[:64]}' is a sweep, not a run", where="name", fix="name one of its runs")
        return _read(found.path, (found.path / "summary.json").stat().st_mtime_ns)


@lru_cache(maxsize=_AT_HAND)
def _read(path: Path, stamp: int) -> StoredRun:
    return read_run(path)


def _found(path: Path, name: str = ".", depth: int = 0) -> Iterator[Result]:
    """Results in a folder; one that is a result itself is not searched."""
    left = _MOST
    waiting = [(path, name, depth)]
    while waiting and left:
        place, name, depth = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue  # not ours to read
        kind = next((kind for file, kind in _KINDS.items() if any(entry.name == file and entry.is_file() for entry in entries)), None)
        if kind is not None:
            left -= 1
            yield Result(name, kind, place)
        elif depth < _DEEPEST:
            below = [entry for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)]
            waiting += [(Path(entry.path), entry.name if name == "." else f"{name}/{entry.name}", depth + 1) for entry in below]


def about(result: Result) -> dict[str, Any]:
    """A result as a row of the list; for one that cannot be read, why."""
    fields: dict[str, Any] = {"name": result.name, "kind": result.kind, "error": "", **dict.fromkeys(_FACTS)}
    try:
        fields["modified"] = round(result.path.stat().st_mtime, 3)
        if result.kind == "sweep":
            head = loads((result.path / "sweep.json").read_text(encoding="utf-8"))
            policies = sorted({str(one["policy"]) for one in head["cases"]})
            return {**fields, "cases": len(head["cases"]), "policy": ", ".join(policies)}
        head = loads((result.path / "summary.json").read_text(encoding="utf-8"))
        if not isinstance(head, dict) or not isinstance(head.get("summary"), dict):
            raise UsageError("is not the summary of a run", where="summary.json")
        return {**fields, **{fact: head["summary"].get(fact) for fact in _FACTS}}
    except (OSError, ValueError, KeyError, TypeError, GantlineError) as error:
        return {**fields, "kind": "broken", "error": f"{type(error).__name__}: {error}"[:300]}


# All of one result: a run with its metrics, or a sweep as a table over its axes with its verdict.


def detail(folder: ResultsFolder, name: str) -> dict[str, Any]:
    """The result; one that cannot be read is shown as broken."""
    result = folder.result(name)
    try:
        return _sweep(result) if result.kind == "sweep" else _run(folder, result)
    except (GantlineError, OSError, ValueError, KeyError) as error:
        return {"name": name, "kind": "broken", "error": str(error)}


def metric_columns() -> list[dict[str, str]]:
    """All metrics: key, label, unit, and whether lower or higher is better."""
    return [{"key": one.key, "label": one.title, "unit": one.unit, "better": one.better} for one in METRICS]


def _run(folder: ResultsFolder, result: Result) -> dict[str, Any]:
    run = folder.run(result.name)
    values = plain(measure(run, window=tracked_window(run.summary)))
    measures = [{**one, "value": values[one["key"]]} for one in metric_columns() if values.get(one["key"]) is not None]
    doubts = [str(one) for one in doubts_of_run(run)]
    return {"name": result.name, "kind": "run", "summary": plain(run.summary), "measures": measures, "doubts": doubts}


def _sweep(result: Result) -> dict[str, Any]:
    cases: list[dict[str, Any]] = loads((result.path / "sweep.json").read_text(encoding="utf-8"))["cases"]
    ended = (result.path / "results.parquet").is_file()
    table = {str(row["hash"]): plain(row) for row in read_results(result.path).rows(named=True)} if ended else {}
    axes = list(dict.fromkeys(axis for case in cases for axis in case["axes"]))
    verdict = result.path / "verdict.txt"
    lines = verdict.read_text(encoding="utf-8").splitlines() if verdict.is_file() else []
    rows = [_case(result, case, table.get(str(case["hash"]), {})) for case in cases]
    return {"name": result.name, "kind": "sweep", "axes": ["policy", *axes], "metrics": metric_columns(), "rows": rows, "lines": lines}


def _case(result: Result, case: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """One case with its place on the axes, its metrics, and the name of its run where that was kept."""
    kept = kept_run(result.path / "runs", str(case["hash"]))
    measures = {one.key: found[one.key] for one in METRICS if found.get(one.key) is not None}
    head = {"case": case["name"], "policy": case["policy"], **plain(case["axes"]), "state": found.get("state", "missing")}
    return {**head, "run": f"{result.name}/runs/{kept.name}" if kept.is_dir() else None, **measures}
