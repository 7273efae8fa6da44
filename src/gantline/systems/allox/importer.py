"""Jobs of IRFsim, the simulator of AlloX (EuroSys 2020): each may run on a GPU or on CPUs.

Four lines a job: ``# id remark``; ``stages id iterations arrival queue``; ``stage -1 cpus memory cpu_time gpus
gpu_memory gpu_time tasks [cpu_error gpu_error]``; ``0`` (the number of edges between stages). The errors are relative:
a scheduler sees the time times one plus the error. The same content is also met as a CSV file with the columns
``job_id,user,arrival_s,cpus,mem_gb,cpu_time_s,gpus,gpu_job_mem_gb,gpu_time_s,cpu_err,gpu_err``.

The request of a job is its GPU form; both forms are in ``options``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.core.errors import TraceError
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace
from gantline.traces.unpack import read_text

_COLUMNS = ("job_id", "user", "arrival_s", "cpus", "mem_gb", "cpu_time_s", "gpus", "gpu_job_mem_gb", "gpu_time_s",
            "cpu_err", "gpu_err")  # fmt: skip


def read(
    src: Path,
    *,
    gpu_type: Annotated[str, "device type of the GPU form"] = "gpu",
    cpu_type: Annotated[str, "device type of the CPU form"] = "cpu",
) -> Trace:
    """The jobs of an IRFsim input file; times are kept as they are."""
    content = read_text(src)
    raw = _blocks(content, src) if content.lstrip().startswith("#") else read_foreign(src, _COLUMNS[:9])
    values = {name: number(raw, name, required=True) for name in _COLUMNS[2:9]}
    columns = {
        "job": text(raw, "job_id"),
        "arrival": values["arrival_s"],
        "gpus": values["gpus"],
        "duration": values["gpu_time_s"],
        "user": text(raw, "user"),
        "memory": values["gpu_job_mem_gb"],
        "options": _options(pl.DataFrame(values), gpu_type, cpu_type),
    }
    errors = [name for name in ("cpu_err", "gpu_err") if name in raw.frame.columns]
    columns |= {name: number(raw, name).fill_null(0.0) for name in errors}
    return Sieve(pl.DataFrame(columns), raw).finish(from_zero=False)


def _options(values: pl.DataFrame, gpu_type: str, cpu_type: str) -> pl.Series:
    """Both forms of every job as a cell of the options column; a form that takes no time does not exist."""
    on_gpu = pl.format("{}:{}/0/{}={}", pl.lit(gpu_type), *map(_short, ("gpus", "gpu_job_mem_gb", "gpu_time_s")))
    plain = pl.format("{}:{}={}", pl.lit(gpu_type), *map(_short, ("gpus", "gpu_time_s")))
    on_cpu = pl.format("{}:0/{}/{}={}", pl.lit(cpu_type), *map(_short, ("cpus", "mem_gb", "cpu_time_s")))
    return values.select(
        options=pl.concat_str(
            pl.when(pl.col("gpu_time_s") > 0).then(pl.when(pl.col("gpu_job_mem_gb") == 0).then(plain).otherwise(on_gpu)),
            pl.when(pl.col("cpu_time_s") > 0).then(on_cpu),
            separator="|",
            ignore_nulls=True,
        )
    )["options"]


def _short(name: str) -> pl.Expr:
    value = pl.col(name)
    return pl.when(value == value.floor()).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))


def _blocks(content: str, src: Path) -> RawTable:
    """The four-line blocks as the rows of a table; a row stands for the line of its numbers."""
    lines = pl.DataFrame({"text": content.split("\n")}).with_row_index("line", 1).filter(pl.col("text").str.contains(r"\S"))
    words = lines.select("line", words=pl.col("text").str.extract_all(r"\S+"))
    head, job, stage, edges = (words.gather_every(4, k) for k in range(4))
    several = (job.head(len(edges))["words"].list.first() != "1") | (edges["words"].list.join(" ") != "0")
    one, count = pl.col("words").list.first(), pl.col("words").list.len()
    found = (
        _first(head.filter(one != "#"), "expected '# id', found '{}'"),
        _first(words.tail(1), "the file ends within a job") if len(words) % 4 else None,
        _first(job.filter(count != 5), "expected 'stages id iterations arrival queue'"),
        _first(edges.filter(several), "jobs of several stages are not supported"),
        _first(stage.filter(~count.is_in([9, 11])), "a stage has 9 or 11 fields"),
    )
    wrong = [item for item in found if item]
    if wrong:
        line, what = min(wrong)
        raise TraceError(what, file=str(src), line=line, fix="four lines a job: '# id', job, stage, 0")
    cells = [job["words"].list.get(at) for at in (1, 4, 3)] + [stage["words"].list.get(at) for at in range(2, 8)]
    cells += [stage["words"].list.get(at, null_on_oob=True).fill_null("0") for at in (9, 10)]
    places = stage["line"]
    return RawTable(pl.DataFrame(dict(zip(_COLUMNS, cells))), str(src), places.to_list)


def _first(lines: pl.DataFrame, what: str) -> tuple[int, str] | None:
    """The first of the offending lines and what is wrong with it."""
    return (lines["line"][0], what.format(" ".join(lines["words"][0])[:40])) if len(lines) else None
