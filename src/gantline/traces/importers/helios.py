"""SenseTime's Helios traces (Hu et al., SC 2021), and the logs of Lucid (ASPLOS 2023) in the same shape.

``cluster_log.csv``: ``job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue``.
More than half of the jobs ask for no GPU. ``queue`` is the seconds a job waited, not the name of a queue; the virtual
cluster is the queue here. TIMEOUT and NODE_FAIL count as failed, as in the paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.importers.sieve import Sieve
from gantline.traces.importers.table import moment, number, read_foreign, text
from gantline.traces.trace import Trace

_OUTCOMES = {"COMPLETED": "completed", "CANCELLED": "killed", "FAILED": "failed", "TIMEOUT": "failed", "NODE_FAIL": "failed"}
_EXTRA = ("dataset", "amp", "speed", "gpu_util", "gmem_util", "gmem")


def read(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
    vc: Annotated[str, "keep the jobs of one virtual cluster only"] = "",
) -> Trace:
    """The jobs of a Helios or Lucid log, in the order of submission."""
    raw = read_foreign(src, ("job_id", "gpu_num", "submit_time", "duration"))
    here = raw.frame.columns
    columns = {
        "job": text(raw, "job_id"),
        "arrival": moment(raw, "submit_time"),
        "gpus": number(raw, "gpu_num"),
        "duration": number(raw, "duration"),
    }
    names = {"user": "user", "queue": "vc", "app": "jobname", "model": "model"}
    columns |= {native: text(raw, name) for native, name in names.items() if name in here}
    if "start_time" in here:
        columns["started"] = moment(raw, "start_time")
    if "cpu_num" in here:
        columns["cpus"] = number(raw, "cpu_num")
    if "batchsize" in here:
        columns["batch_size"] = number(raw, "batchsize")
    if "state" in here:
        columns["outcome"] = text(raw, "state").replace_strict(_OUTCOMES, default="", return_dtype=pl.String)
    columns |= {name: raw.frame[name] for name in _EXTRA if name in here}
    sieve = Sieve(pl.DataFrame(columns), raw)
    if vc:
        sieve.drop(pl.col("queue") != vc if "queue" in columns else pl.lit(True), f"not of virtual cluster '{vc}'")
    return sieve.finish_log(cpu_jobs)
