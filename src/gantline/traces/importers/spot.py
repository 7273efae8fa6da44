"""Alibaba's spot GPU trace of 2026 (GFS, ASPLOS 2026): ``job_info_df.csv``.

``job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type``. A job has
``worker_num`` equal workers, each with its own GPUs and CPUs. High-priority (HP) jobs get priority 1, spot jobs 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.importers.sieve import Sieve
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.trace import Trace


def read(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
) -> Trace:
    """The jobs of the table, in the order of submission."""
    raw = read_foreign(src, ("job_name", "gpu_request", "worker_num", "submit_time", "duration", "job_type"))
    workers = number(raw, "worker_num").fill_null(1)
    demand = number(raw, "gpu_request").fill_null(0) * workers
    columns = {
        "job": text(raw, "job_name"),
        "arrival": number(raw, "submit_time"),
        "gpus": demand.ceil(),
        "duration": number(raw, "duration"),
        "user": text(raw, "organization"),
        "type": text(raw, "gpu_model"),
        "priority": (text(raw, "job_type") == "HP").cast(pl.Float64),
        "gpu_demand": demand,
    }
    if "cpu_request" in raw.frame.columns:
        columns["cpus"] = number(raw, "cpu_request") * workers
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.drop(pl.col("arrival").is_null(), "no time of submission")
    sieve.drop(pl.col("duration").is_null() | (pl.col("duration") <= 0), "no positive duration")
    without = pl.col("gpus") <= 0
    keep_cpu = cpu_jobs and "cpus" in columns
    sieve.drop(without & ~(pl.col("cpus") > 0) if keep_cpu else without, "no GPUs")
    parts = int((sieve.frame["gpu_demand"] != sieve.frame["gpus"]).sum())
    if parts:
        sieve.note(f"rounded {parts} requests for parts of a GPU up to whole ones (exact in gpu_demand)")
    return sieve.finish(from_zero=True)
