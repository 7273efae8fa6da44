"""Microsoft's Philly trace: ``cluster_job_log``, a JSON list (Jeon et al., ATC 2019).

Each job has a status, a virtual cluster, a user, a time of submission and a list of scheduling attempts, each with a
start, an end and the GPUs it ran on. Known defects of the log: jobs without attempts, attempts without start or end
(``None``, also as text), attempts without GPUs, ends before starts, and attempts that were still running when the log
was taken. All of these are counted in the notes. Dates are local (Pacific) time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from gantline.core.errors import TraceError
from gantline.core.json_reader import loads
from gantline.traces.dates import seconds_since_1970
from gantline.traces.importers.table import Sieve, date_of, present
from gantline.traces.trace import Trace
from gantline.traces.unpack import read_text

_OUTCOMES = {"pass": "completed", "failed": "failed", "killed": "killed"}
_ATTEMPT: dict[str, Any] = {"start_time": pl.String, "end_time": pl.String, "detail": pl.List(pl.Struct({"gpus": pl.List(pl.String)}))}
_JOB: dict[str, Any] = {
    **dict.fromkeys(("jobid", "submitted_time", "user", "vc", "status"), pl.String),
    "attempts": pl.List(pl.Struct(_ATTEMPT)),
}
_COUNTED = {
    "late": "attempts end before they start",
    "timeless": "attempts lack a time",
    "running": "attempts were still running when the log was taken",
    "resized": "jobs changed their number of GPUs between attempts (the last one counts)",
    "undated": "jobs lack a time of submission (their first start is taken)",
}


def read(
    src: Path,
    *,
    attempts: Annotated[Literal["sum", "last"], "run time: the sum of all attempts, or the last one only"] = "sum",
) -> Trace:
    """The GPU jobs of the log; GPUs are those of the last attempt that had any."""
    content = read_text(src)
    log = _log(content, src).with_row_index("row")
    names = log["jobid"].fill_null("")
    arrival = _moments(log["submitted_time"], names, src, content).alias("arrival")
    jobs = log.with_columns(arrival, tried=pl.col("attempts").list.len().fill_null(0))
    tries = _attempts(log)
    names = names.gather(tries["row"])
    start, end = (_moments(tries[name], names, src, content).alias(name[:-5]) for name in ("start_time", "end_time"))
    tries = tries.with_columns(start, end).with_columns(length=pl.col("end") - pl.col("start"))
    tries = tries.with_columns(
        late=pl.col("length") < 0,
        timeless=pl.col("length").is_null() & ~(pl.col("last") & pl.col("start").is_not_null()),
        running=pl.col("length").is_null() & pl.col("last") & pl.col("start").is_not_null(),
        length=pl.when(pl.col("length") >= 0).then("length"),
        gpus=pl.when(pl.col("gpus") > 0).then("gpus"),
    )
    known = pl.col("length").drop_nulls()
    each = tries.group_by("row").agg(
        duration=known.sum() if attempts == "sum" else known.last(),
        resized=pl.col("gpus").drop_nulls().n_unique() > 1,
        gpus=pl.col("gpus").drop_nulls().last(),
        first=pl.col("start").min(),
    )
    frame = jobs.join(each, on="row", how="left", maintain_order="left")
    frame = frame.with_columns(undated=pl.col("arrival").is_null() & pl.col("first").is_not_null())
    counts = [*tries.select("late", "timeless", "running").sum().row(0), *frame.select("resized", "undated").sum().row(0)]
    sieve = Sieve(
        frame.select(
            job=pl.col("jobid").fill_null(""),
            arrival=pl.coalesce("arrival", "first"),
            gpus=pl.col("gpus").fill_null(0),
            duration=pl.col("duration").fill_null(0.0),
            user=pl.col("user").fill_null(""),
            queue=pl.col("vc").fill_null(""),
            outcome=pl.col("status").str.to_lowercase().replace_strict(_OUTCOMES, default="", return_dtype=pl.String),
            attempts="tried",
        ),
        src,
    )
    sieve.drop(pl.col("attempts") == 0, "no recorded attempt")
    sieve.drop(pl.col("duration") <= 0, "no attempt with a start and a later end")
    sieve.drop(pl.col("gpus") == 0, "no GPUs")
    sieve.drop(pl.col("arrival").is_null(), "no time of submission")
    for text, count in sorted(zip(_COUNTED.values(), counts)):
        if count:
            sieve.note(f"{count} {text}")
    sieve.note_start(lambda first: f"{date_of(first)} (Pacific time)")
    return sieve.finish(from_zero=True)


def _log(content: str, src: Path) -> pl.DataFrame:
    """The jobs as a table with a list of attempts; what keeps it from being one is reported with its place."""
    try:
        if content.lstrip().startswith("["):
            return pl.read_json(content.encode(), schema=_JOB)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        pass
    try:
        jobs = loads(content)
    except json.JSONDecodeError as error:
        fix = "was the file cut short?"
        raise TraceError(f"is not JSON: {error.msg}", file=str(src), line=error.lineno, fix=fix) from error
    except RecursionError as error:
        raise TraceError("is nested too deeply", file=str(src), fix="is this cluster_job_log?") from error
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise TraceError("is not a JSON list of jobs", file=str(src), line=1, fix="is this cluster_job_log?")
    what = f"job '{_culprit(jobs).get('jobid', '?')}' does not have the published form"
    raise TraceError(what, file=str(src), fix="attempts: [{start_time, end_time, detail: [...]}]")


def _culprit(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """The first job that is no row of the table, by halving."""
    while len(jobs) > 1:
        half = jobs[: len(jobs) // 2]
        try:
            pl.read_json(json.dumps(half).encode(), schema=_JOB)
            jobs = jobs[len(half) :]
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            jobs = half
    return jobs[0]


def _attempts(log: pl.DataFrame) -> pl.DataFrame:
    """A row per attempt: its job, whether it was the last, its times as found and its GPUs."""
    tries = log.select("row", "attempts").filter(pl.col("attempts").list.len() > 0).explode("attempts").unnest("attempts")
    on_nodes = pl.col("detail").list.eval(pl.element().struct.field("gpus").list.len())
    return tries.with_columns(
        gpus=on_nodes.list.sum().fill_null(0),
        last=(pl.col("row") != pl.col("row").shift(-1)).fill_null(True),
    )


def _moments(cells: pl.Series, names: pl.Series, src: Path, content: str) -> pl.Series:
    """Dates as seconds; a cell that is none is quoted with its job."""
    found = present(cells)
    seconds = seconds_since_1970(found)
    bad = found.is_not_null() & seconds.is_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        name = names[row]
        line = content.count("\n", 0, max(content.find(f'"{name}"'), 0)) + 1
        what = f"job '{name}': {found[row][:40]!r} is not a date"
        raise TraceError(what, file=str(src), line=line, field=cells.name, fix="such as 2017-10-07 01:12:09")
    return seconds
