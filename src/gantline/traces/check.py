"""Every contradiction in a trace file, not only the first one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.traces.against_cluster import contradictions_with, impossible_times
from gantline.traces.cells import typed
from gantline.traces.faults import contradictions, missing_columns
from gantline.traces.finding import Finding
from gantline.traces.read import RawTable, read_table
from gantline.traces.rename import native as as_native
from gantline.traces.schema import fill_empty
from gantline.traces.trace import Trace


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
