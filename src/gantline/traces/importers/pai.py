"""Alibaba's PAI trace of 2020 (Weng et al., NSDI 2022): ``pai_task_table`` joined with ``pai_job_table``.

The tables have no header. A job has one task per role (worker, ps, ...), each with a number of equal instances whose
``plan_gpu`` and ``plan_cpu`` are per cent of one GPU or core (50 is half a GPU). A job's request is the sum over its
tasks, rounded up to whole GPUs; the exact sum is kept as ``gpu_demand``. The job table gives the time of submission and
the user; without it jobs are taken to arrive when their first task starts. Known defects: tasks without times (waiting
or running when the log was taken), without instances, and of unknown GPU type.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.core.errors import NotFoundError, TraceError
from gantline.traces.dates import divide
from gantline.traces.importers.published import openb
from gantline.traces.importers.table import Sieve, number, outcomes, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace
from gantline.traces.unpack import read_text

TASKS = ("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
         "gpu_type")  # fmt: skip
JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
_OUTCOMES = {"Terminated": "completed", "Failed": "failed"}


def read(
    src: Path,
    *,
    jobs: Annotated[Path | None, "pai_job_table, for users and times of submission"] = None,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
) -> Trace:
    """The jobs of the task table ``src``, which may also be the folder that holds both tables."""
    if src.is_dir():
        src, jobs = _find(src, "pai_task_table"), jobs or _find(src, "pai_job_table")
    head = read_text(src).split("\n", 1)[0]
    if head.startswith("name,cpu_milli"):
        return openb(src, cpu_jobs=cpu_jobs)
    if head.count(",") + 1 == len(JOBS):
        raise TraceError("is the job table", file=str(src), line=1, fix="name pai_task_table, and this as option jobs")
    sieve = Sieve(_per_job(_table(src, TASKS)), src)
    if jobs is not None:
        _join(sieve, _table(jobs, JOBS), jobs)
    else:
        sieve.note("no job table given: jobs arrive when their first task starts, users are unknown")
    sieve.drop(pl.col("_start").is_null(), "never started")
    sieve.drop(pl.col("_unfinished") > 0, "not finished when the log was taken")
    sieve.drop_unusable(cpu_jobs)
    sieve.note_parts()
    sieve.note_start("second {:.0f} of the original".format)
    return sieve.finish(from_zero=True)


def _find(folder: Path, stem: str) -> Path:
    for path in sorted(folder.glob(f"{stem}.*")):
        if not path.name.endswith(".header"):
            return path
    raise NotFoundError(f"no {stem} file in this folder", where=str(folder))


def _table(src: Path, columns: tuple[str, ...]) -> RawTable:
    raw = read_foreign(src, (), columns=columns)
    if raw.frame.row(0)[0] == columns[0]:  # someone put the header back
        raw = read_foreign(src, columns)
    return raw


def _per_job(raw: RawTable) -> pl.DataFrame:
    size, gpu, cpu = (number(raw, name) for name in ("inst_num", "plan_gpu", "plan_cpu"))
    tasks = pl.DataFrame(
        {
            "job": text(raw, "job_name"),
            "size": size.fill_null(1.0),
            "gpu": divide(gpu.fill_null(0.0), 100),
            "cpu": divide(cpu.fill_null(0.0), 100),
            "memory": number(raw, "plan_mem").fill_null(0.0),
            "start": number(raw, "start_time"),
            "end": number(raw, "end_time"),
            "status": text(raw, "status"),
            "type": text(raw, "gpu_type"),
        }
    )
    demand = (pl.col("size") * pl.col("gpu")).sum().round(6)
    kinds = pl.col("type").filter((pl.col("gpu") > 0) & (pl.col("type") != ""))
    statuses = pl.col("status")
    outcome = pl.when((statuses == "Failed").any()).then(pl.lit("failed"))
    return tasks.group_by("job", maintain_order=True).agg(
        arrival=pl.col("start").min(),
        gpus=demand.ceil(),
        duration=pl.col("end").max() - pl.col("start").min(),
        type=pl.when(kinds.n_unique() == 1).then(kinds.first()).otherwise(pl.lit("")),
        cpus=(pl.col("size") * pl.col("cpu")).sum(),
        memory=(pl.col("size") * pl.col("memory")).sum(),
        outcome=outcome.when((statuses == "Terminated").all()).then(pl.lit("completed")).otherwise(pl.lit("")),
        gpu_demand=demand,
        tasks=pl.len().cast(pl.Int64),
        _start=pl.col("start").min(),
        _unfinished=pl.col("end").is_null().sum(),
    )


def _join(sieve: Sieve, raw: RawTable, path: Path) -> None:
    submitted = pl.DataFrame(
        {
            "job": text(raw, "job_name"),
            "user": text(raw, "user"),
            "_submitted": number(raw, "start_time"),
            "_outcome": outcomes(text(raw, "status"), _OUTCOMES),
        }
    ).unique("job", keep="first", maintain_order=True)
    sieve.frame = sieve.frame.join(submitted, on="job", how="left", maintain_order="left")
    unknown = pl.col("_submitted").is_null()
    count = int(sieve.frame.select(unknown.sum()).item())
    if count:
        sieve.note(f"{count} jobs have no time of submission in {path.name} (their first start is taken)")
    sieve.frame = sieve.frame.with_columns(
        arrival=pl.coalesce("_submitted", "arrival"), outcome=pl.coalesce("_outcome", "outcome"), user=pl.col("user")
    )
