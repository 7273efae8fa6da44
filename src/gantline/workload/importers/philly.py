"""Microsoft's Philly trace: ``cluster_job_log``, a JSON list (Jeon et al., ATC 2019).

Each job has a status, a virtual cluster, a user, a time of submission and a list of scheduling attempts, each with a
start, an end and the GPUs it ran on. Known defects of the log: jobs without attempts, attempts without start or end
(``None``, also as text), attempts without GPUs, ends before starts, and attempts that were still running when the log
was taken. All of these are counted in the notes. Dates are local (Pacific) time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from gantline.core.errors import TraceError
from gantline.workload.importers.sieve import Sieve
from gantline.workload.importers.table import MISSING, date_of
from gantline.workload.trace import Trace
from gantline.workload.unpack import read_text

_OUTCOMES = {"pass": "completed", "failed": "failed", "killed": "killed"}
_EPOCH = datetime(1970, 1, 1)


def read(
    src: Path,
    *,
    attempts: Annotated[Literal["sum", "last"], "run time: the sum of all attempts, or the last one only"] = "sum",
) -> Trace:
    """The GPU jobs of the log; GPUs are those of the last attempt that had any."""
    content = read_text(src)
    counts: Counter[str] = Counter()
    rows = []
    for job in _jobs(content, src):
        try:
            rows.append(_row(job, attempts, counts, src, content))
        except (AttributeError, TypeError) as error:
            what = f"job '{job.get('jobid', '?')}' does not have the published form"
            raise TraceError(what, file=str(src), fix="attempts: [{start_time, end_time, detail: [...]}]") from error
    columns = ("job", "arrival", "gpus", "duration", "user", "queue", "outcome", "attempts")
    sieve = Sieve(pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None), src)
    sieve.drop(pl.col("attempts") == 0, "no recorded attempt")
    sieve.drop(pl.col("duration") <= 0, "no attempt with a start and a later end")
    sieve.drop(pl.col("gpus") == 0, "no GPUs")
    sieve.drop(pl.col("arrival").is_null(), "no time of submission")
    for text, count in sorted(counts.items()):
        sieve.note(f"{count} {text}")
    if not sieve.frame.is_empty():
        sieve.note(f"time 0 is {date_of(float(sieve.frame['arrival'].to_numpy().min()))} (Pacific time)")
    return sieve.finish(from_zero=True)


def _jobs(content: str, src: Path) -> Iterator[dict[str, Any]]:
    try:
        jobs = json.loads(content)
    except json.JSONDecodeError as error:
        fix = "was the file cut short?"
        raise TraceError(f"is not JSON: {error.msg}", file=str(src), line=error.lineno, fix=fix) from error
    except RecursionError as error:
        raise TraceError("is nested too deeply", file=str(src), fix="is this cluster_job_log?") from error
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise TraceError("is not a JSON list of jobs", file=str(src), line=1, fix="is this cluster_job_log?")
    yield from jobs


def _row(job: dict[str, Any], mode: str, counts: Counter[str], src: Path, content: str) -> tuple[Any, ...]:
    identity = str(job.get("jobid", ""))
    lengths: list[float] = []
    sizes: list[int] = []
    starts: list[float] = []

    def seconds(holder: dict[str, Any], field: str) -> float | None:
        value = holder.get(field)
        if value is None or str(value).strip().lower() in MISSING:
            return None
        try:
            return (datetime.fromisoformat(str(value)).replace(tzinfo=None) - _EPOCH).total_seconds()
        except ValueError as error:
            line = content.count("\n", 0, max(content.find(f'"{identity}"'), 0)) + 1
            what = f"job '{identity}': {str(value)[:40]!r} is not a date"
            fix = "such as 2017-10-07 01:12:09"
            raise TraceError(what, file=str(src), line=line, field=field, fix=fix) from error

    tried = job.get("attempts") or []
    for position, attempt in enumerate(tried):
        start, end = seconds(attempt, "start_time"), seconds(attempt, "end_time")
        size = sum(len(node.get("gpus") or ()) for node in attempt.get("detail") or ())
        if size:
            sizes.append(size)
        if start is not None:
            starts.append(start)
        if start is None or end is None:
            running = start is not None and position == len(tried) - 1
            counts["attempts were still running when the log was taken" if running else "attempts lack a time"] += 1
        elif end < start:
            counts["attempts end before they start"] += 1
        else:
            lengths.append(end - start)
    if len(set(sizes)) > 1:
        counts["jobs changed their number of GPUs between attempts (the last one counts)"] += 1
    arrival = seconds(job, "submitted_time")
    if arrival is None and starts:
        counts["jobs lack a time of submission (their first start is taken)"] += 1
        arrival = min(starts)
    duration = (sum(lengths) if mode == "sum" else lengths[-1]) if lengths else 0.0
    outcome = _OUTCOMES.get(str(job.get("status", "")).lower(), "")
    user, queue = str(job.get("user") or ""), str(job.get("vc") or "")
    return identity, arrival, sizes[-1] if sizes else 0, duration, user, queue, outcome, len(tried)
