"""The Standard Workload Format of the Parallel Workloads Archive (Chapin et al., JSSPP 1999).

Comment lines begin with ``;``; a job is 18 numbers separated by blanks, -1 where unknown: job, submit, wait, run,
processors, CPU time, memory used, processors asked for, time asked for, memory asked for (KB per processor), status,
user, group, application, queue, partition, preceding job, think time. A job that was swapped or checkpointed has
extra lines of status 2, 3 and 4 for its parts; the line that sums them up is kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.core.errors import TraceError, UsageError
from gantline.traces.dates import divide
from gantline.traces.importers.table import Sieve, number
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace
from gantline.traces.unpack import read_text

FIELDS = ("job", "submit", "wait", "run", "procs", "cpu_time", "used_memory", "asked_procs", "asked_time",
          "asked_memory", "status", "user", "group", "app", "queue", "partition", "preceding", "think")  # fmt: skip
_OUTCOMES = {0.0: "failed", 1.0: "completed", 5.0: "killed"}
_GB_PER_KB = 1024 / 1e9


def read(
    src: Path,
    *,
    procs_per_gpu: Annotated[int, "processors that stand for one GPU; a part counts as a whole one"] = 1,
) -> Trace:
    """The jobs of the log; processors stand for GPUs."""
    if procs_per_gpu < 1:
        raise UsageError(f"option 'procs_per_gpu': {procs_per_gpu} is below 1", fix="give 1 or more")
    raw, begin = _rows(src)
    known = {name: number(raw, name, required=True) for name in FIELDS}
    value = {name: pl.select(pl.when(column >= 0).then(column)).to_series() for name, column in known.items()}
    procs = pl.select(pl.coalesce(value["asked_procs"].replace(0.0, None), value["procs"])).to_series()
    memory = pl.select(pl.coalesce(value["asked_memory"], value["used_memory"])).to_series()
    frame = pl.DataFrame(
        {
            "job": known["job"],
            "arrival": value["submit"],
            "gpus": divide(procs, procs_per_gpu).ceil(),
            "duration": value["run"],
            "user": _label(value["user"]),
            "queue": _label(value["queue"]),
            "app": _label(value["app"]),
            "memory": memory * procs * _GB_PER_KB,
            "outcome": known["status"].replace_strict(_OUTCOMES, default="", return_dtype=pl.String),
            "time_limit": value["asked_time"],
            "_part": known["status"].is_in([2.0, 3.0, 4.0]),
        }
    )
    sieve = Sieve(frame, raw)
    sieve.drop(pl.col("_part"), "parts of a checkpointed job (its summary line is kept)")
    sieve.drop_unusable(idle="never ran (no positive run time)", small="no processors")
    if begin:
        sieve.note(f"time 0 of the log is Unix time {begin}")
    return sieve.finish(from_zero=True)


def _rows(src: Path) -> tuple[RawTable, str]:
    lines = pl.Series(read_text(src).split("\n")).str.strip_chars()
    remark = lines.str.starts_with(";")
    begin = lines.filter(remark).str.extract(r"UnixStartTime:\s*(\d+)").drop_nulls()
    jobs = (~remark & (lines != "")).arg_true()
    fields = lines.gather(jobs).str.extract_all(r"\S+")
    wrong = fields.list.len() != len(FIELDS)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        what = f"has {len(fields[row])} fields, a job has {len(FIELDS)}"
        raise TraceError(what, file=str(src), line=jobs[row] + 1, fix="is this the right file and format?")
    if not len(jobs):
        raise TraceError("holds no jobs", file=str(src), fix="was the download complete?")
    frame = pl.DataFrame({name: fields.list.get(at) for at, name in enumerate(FIELDS)})
    return RawTable(frame, str(src), lambda: (jobs + 1).to_list()), begin[0] if len(begin) else ""


def _label(values: pl.Series) -> pl.Series:
    return values.cast(pl.Int64, strict=False).cast(pl.String).fill_null("")
