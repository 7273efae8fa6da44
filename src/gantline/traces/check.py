"""Every contradiction in a trace file, not only the first one, and a repaired copy of the file.

A repaired trace is written to a new file; the old one is never touched. What could be meant in two ways (two
different jobs under one id, a negative duration, a number that is none) stays as it is and is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.traces.against_cluster import contradictions_with, impossible_times
from gantline.traces.cells import typed
from gantline.traces.faults import Finding, contradictions, missing_columns
from gantline.traces.read import RawTable, read_table
from gantline.traces.rename import native as as_native
from gantline.traces.rename import rename, seconds_from_dates, seconds_from_words
from gantline.traces.schema import fill_empty
from gantline.traces.trace import Trace
from gantline.traces.write import write_frame


@dataclass(frozen=True)
class TraceProblem:
    """One contradiction: where it is, what it is, how to put it right, and whether :func:`repair` does."""

    file: str
    line: int | None
    field: str
    what: str
    fix: str
    repairable: bool

    def __str__(self) -> str:
        return str(TraceError(self.what, file=self.file, line=self.line, field=self.field, fix=self.fix))


def check(path: str | Path, cluster: Cluster | None = None) -> list[TraceProblem]:
    """All problems of a trace file in the order of its lines; none: it loads, its times can be, and it fits a cluster that is given."""
    try:
        raw = read_table(Path(path))
    except TraceError as error:
        return [TraceProblem(error.file, error.line, error.field, error.what, error.fix, False)]
    if found := check_table(raw):
        return found
    trace = Trace.from_table(raw)
    findings = [*impossible_times(trace), *(contradictions_with(trace, cluster) if cluster is not None else [])]
    problems = [each for finding in findings for each in _problems(finding, raw)]
    return sorted(problems, key=lambda problem: problem.line or 0)


def check_table(raw: RawTable) -> list[TraceProblem]:
    """All problems of rows that were already read."""
    native = as_native(raw.frame)[0]
    findings = list(missing_columns(native))
    if raw.frame.is_empty():
        findings.append(Finding("", "holds no jobs", "a trace needs at least one row"))
    frame, unreadable = typed(native)
    if not missing_columns(native):
        frame = fill_empty(frame)
    findings += unreadable
    findings += contradictions(frame)
    problems = [problem for finding in findings for problem in _problems(finding, raw)]
    return sorted(problems, key=lambda problem: problem.line or 0)


def _problems(finding: Finding, raw: RawTable) -> list[TraceProblem]:
    fix = finding.fix.replace("FILE", raw.source)
    if not finding.rows:
        return [TraceProblem(raw.source, raw.header_line, finding.field, finding.what, fix, finding.repairable)]
    return [
        TraceProblem(raw.source, raw.line(row), finding.field, finding.describe(at), fix, finding.repairable)
        for at, row in enumerate(finding.rows)
    ]


_MOST_LEFT = 20


def repair(path: str | Path, out: str | Path) -> list[str]:
    """Write a repaired copy of ``path`` to ``out`` and say, line by line, what was done and what is left."""
    frame = read_table(Path(path), numbers=()).frame  # what stays as it is is written as it was spelled
    said: list[str] = []
    for step in (_trim, rename, _number_jobs, seconds_from_dates, seconds_from_words, _drop_repeats, _sort):
        frame, news = step(frame)
        said += news
    sound = not check_table(RawTable(frame, str(out)))
    write_frame(fill_empty(typed(frame)[0]) if sound else frame, Path(out))
    left = [f"left: {problem}" for problem in check(out)]
    if len(left) > _MOST_LEFT:
        left[_MOST_LEFT:] = [f"left: {len(left) - _MOST_LEFT} more problems"]
    return said + left


Step = tuple[pl.DataFrame, list[str]]


def _trim(frame: pl.DataFrame) -> Step:
    said = []
    trimmed = [name.strip() for name in frame.columns]
    if trimmed != frame.columns and len(set(trimmed)) == len(trimmed):
        said.append("removed spaces around column names")
        frame = frame.rename(dict(zip(frame.columns, trimmed)))
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    clean = frame.with_columns(pl.col(texts).str.strip_chars())
    changed = sum(int((frame[name] != clean[name]).sum() or 0) for name in texts)
    if changed:
        said.append(f"removed spaces around {changed} value{'s' * (changed > 1)}")
    return clean, said


def _number_jobs(frame: pl.DataFrame) -> Step:
    if "job" in frame.columns or frame.is_empty():
        return frame, []
    numbers = pl.Series("job", range(len(frame))).cast(pl.String)
    return frame.insert_column(0, numbers), ["numbered the jobs from 0, in the order of the rows"]


def _drop_repeats(frame: pl.DataFrame) -> Step:
    kept = frame.unique(keep="first", maintain_order=True)
    dropped = len(frame) - len(kept)
    return kept, [f"dropped {dropped} row{'s' * (dropped > 1)} equal to an earlier one"] if dropped else []


def _sort(frame: pl.DataFrame) -> Step:
    if "arrival" not in frame.columns:
        return frame, []
    key = frame["arrival"].cast(pl.Float64, strict=False)
    if key.null_count() or key.is_nan().any() or key.is_sorted():
        return frame, []
    early = int((key.diff() < 0).sum())
    ordered = frame.with_columns(key.alias("__key")).sort("__key", maintain_order=True).drop("__key")
    return ordered, [f"sorted the rows by arrival ({early} came before the row above)"]
