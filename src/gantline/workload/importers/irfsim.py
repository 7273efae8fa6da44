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
from gantline.workload.importers.sieve import Sieve
from gantline.workload.importers.table import number, read_foreign, text
from gantline.workload.options import Option, format_options
from gantline.workload.read import RawTable
from gantline.workload.trace import Trace
from gantline.workload.unpack import read_text

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
        "options": pl.Series([_options(row, gpu_type, cpu_type) for row in pl.DataFrame(values).iter_rows(named=True)]),
    }
    errors = [name for name in ("cpu_err", "gpu_err") if name in raw.frame.columns]
    columns |= {name: number(raw, name).fill_null(0.0) for name in errors}
    return Sieve(pl.DataFrame(columns), raw).finish(from_zero=False)


def _options(row: dict[str, float], gpu_type: str, cpu_type: str) -> str:
    on_gpu = Option(gpu_type, int(row["gpus"]), row["gpu_time_s"], memory=row["gpu_job_mem_gb"])
    on_cpu = Option(cpu_type, 0, row["cpu_time_s"], row["cpus"], row["mem_gb"])
    return format_options(option for option in (on_gpu, on_cpu) if option.duration > 0)


def _blocks(content: str, src: Path) -> RawTable:
    """The four-line blocks as the rows of a table; a row stands for the line of its numbers."""
    lines = [(at, line.split()) for at, line in enumerate(content.split("\n"), start=1) if line.strip()]
    rows, places = [], []
    for begin in range(0, len(lines), 4):
        block = lines[begin : begin + 4]
        at, head = block[0]
        if head[0] != "#":
            raise _broken(src, at, f"expected '# id', found '{' '.join(head)[:40]}'")
        if len(block) < 4:
            raise _broken(src, block[-1][0], "the file ends within a job")
        (_, job), (where, stage), (last, edges) = block[1:]
        if len(job) != 5:
            raise _broken(src, block[1][0], "expected 'stages id iterations arrival queue'")
        if job[0] != "1" or edges != ["0"]:
            raise _broken(src, last, "jobs of several stages are not supported")
        if len(stage) not in (9, 11):
            raise _broken(src, where, f"a stage has 9 or 11 fields, not {len(stage)}")
        errors = stage[9:] or ["0", "0"]
        rows.append([job[1], job[4], job[3], *stage[2:8], *errors])
        places.append(where)
    return RawTable(pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row"), str(src), lambda: places)


def _broken(src: Path, line: int, what: str) -> TraceError:
    return TraceError(what, file=str(src), line=line, fix="four lines a job: '# id', job, stage, 0")
