"""Acme: the traces of Shanghai AI Laboratory's clusters Seren and Kalos (Hu et al., NSDI 2024), development of large language models.

``trace_seren.csv`` and ``trace_kalos.csv``: ``job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,
duration,queue,gpu_time``; Kalos adds ``mem_per_pod_GB,shared_mem_per_pod,fail_time,stop_time``. Dates carry their zone. As in Helios,
``queue`` is the seconds a job waited. ``type`` says what the job is for (Pretrain, Evaluation, Debug, ...) and becomes ``app``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.importers.sieve import Sieve
from gantline.traces.importers.table import number, read_foreign, text, zoned_moment
from gantline.traces.trace import Trace

_OUTCOMES = {"COMPLETED": "completed", "CANCELLED": "killed", "FAILED": "failed", "TIMEOUT": "failed", "NODE_FAIL": "failed"}


def read(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
    kind: Annotated[str, "keep the jobs of one type only, such as Pretrain"] = "",
) -> Trace:
    """The jobs of a cluster that ran, in the order of submission."""
    raw = read_foreign(src, ("job_id", "gpu_num", "type", "submit_time", "duration"))
    here = raw.frame.columns
    columns = {
        "job": text(raw, "job_id"),
        "arrival": zoned_moment(raw, "submit_time"),
        "gpus": number(raw, "gpu_num"),
        "duration": number(raw, "duration"),
        "user": text(raw, "user"),
        "app": text(raw, "type"),
        "outcome": text(raw, "state").str.to_uppercase().replace_strict(_OUTCOMES, default="", return_dtype=pl.String),
    }
    if "start_time" in here:
        columns["started"] = zoned_moment(raw, "start_time")
    if "cpu_num" in here:
        columns["cpus"] = number(raw, "cpu_num")
    if "mem_per_pod_GB" in here and "node_num" in here:
        columns["memory"] = number(raw, "mem_per_pod_GB") * number(raw, "node_num")
    sieve = Sieve(pl.DataFrame(columns), raw)
    if kind:
        sieve.drop(pl.col("app").str.to_lowercase() != kind.lower(), f"not of type '{kind}'")
    return sieve.finish_log(cpu_jobs)
