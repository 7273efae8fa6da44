"""Tiresias traces (NSDI 2019): ``job_id,num_gpu,submit_time,iterations,model_name,duration,interval``, all times in seconds.

``interval`` is the gap to the next arrival and is not kept. Traces of Muri have these columns too, but in milliseconds.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace


def read(src: Path) -> Trace:
    """The jobs of a Tiresias trace; times are kept as they are, in seconds."""
    raw = read_foreign(src, ("job_id", "num_gpu", "submit_time", "duration"))
    here = raw.frame.columns
    if "resource_time_0" in here:
        raise raw.error("a Muri trace, which counts in milliseconds", field="resource_time_0", fix="gantline trace import muri")
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_id"),
            "arrival": number(raw, "submit_time", required=True),
            "gpus": number(raw, "num_gpu", required=True),
            "duration": number(raw, "duration", required=True),
        }
    )
    extra = [text(raw, "model_name").rename("model")] if "model_name" in here else []
    extra += [number(raw, name) for name in ("batch_size", "iterations") if name in here]
    sieve = Sieve(frame.with_columns(extra), raw)
    sieve.drop(pl.col("duration") <= 0, "no positive duration")
    sieve.drop(pl.col("gpus") <= 0, "no GPUs")
    return sieve.finish(from_zero=False)
