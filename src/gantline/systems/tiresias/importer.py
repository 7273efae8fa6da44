"""Tiresias traces (NSDI 2019), and the traces of Muri (SIGCOMM 2022) that grew out of them.

Tiresias: ``job_id,num_gpu,submit_time,iterations,model_name,duration,interval``, all times in seconds. Muri adds
stage times per iteration (``resource_time_0..2``) and counts in milliseconds; these columns tell the two apart.
``interval`` is the gap to the next arrival and is not kept.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.workload.exact import divide
from gantline.workload.importers.sieve import Sieve
from gantline.workload.importers.table import number, read_foreign, text
from gantline.workload.trace import Trace

_STAGES = ("iteration_time", "resource_time_0", "resource_time_1", "resource_time_2")


def read(src: Path) -> Trace:
    """The jobs of a Tiresias or Muri trace; times are kept as they are, in seconds."""
    raw = read_foreign(src, ("job_id", "num_gpu", "submit_time", "duration"))
    muri = "resource_time_0" in raw.frame.columns
    per_second = 1000.0 if muri else 1.0
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_id"),
            "arrival": divide(number(raw, "submit_time", required=True), per_second),
            "gpus": number(raw, "num_gpu", required=True),
            "duration": divide(number(raw, "duration", required=True), per_second),
        }
    )
    here = raw.frame.columns
    extra = [text(raw, "model_name").rename("model")] if "model_name" in here else []
    extra += [number(raw, name) for name in ("batch_size", "iterations") if name in here]
    if muri:
        extra += [number(raw, name).rename(f"{name}_ms") for name in _STAGES if name in here]
        extra += [number(raw, "priority").rename("antman_opportunistic")] if "priority" in here else []
    sieve = Sieve(frame.with_columns(extra), raw)
    if muri:
        sieve.note("a Muri trace: milliseconds turned into seconds")
    sieve.drop(pl.col("duration") <= 0, "no positive duration")
    sieve.drop(pl.col("gpus") <= 0, "no GPUs")
    return sieve.finish(from_zero=False)
