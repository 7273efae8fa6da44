"""A plain list of jobs with dates: ``timestamp,duration,num_gpus,gpu_time,cluster``.

The authors of Pollux (OSDI 2021) published the jobs of Microsoft's Philly trace (Jeon et al., ATC 2019) in this form.
``gpu_time`` is the product of the two columns before it and is not kept.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.traces.importers.sieve import Sieve
from gantline.traces.importers.table import date_of, moment, number, read_foreign, text
from gantline.traces.trace import Trace


def read(src: Path) -> Trace:
    """The jobs of the list in the order of their dates, numbered from 0."""
    raw = read_foreign(src, ("timestamp", "duration", "num_gpus"))
    frame = pl.DataFrame(
        {
            "job": pl.Series(range(len(raw.frame)), dtype=pl.Int64),
            "arrival": moment(raw, "timestamp"),
            "gpus": number(raw, "num_gpus"),
            "duration": number(raw, "duration"),
            "queue": text(raw, "cluster"),
        }
    )
    sieve = Sieve(frame, raw)
    sieve.drop(pl.col("arrival").is_null(), "no date")
    sieve.drop(pl.col("duration").is_null() | (pl.col("duration") <= 0), "no positive duration")
    sieve.drop(pl.col("gpus").is_null() | (pl.col("gpus") <= 0), "no GPUs")
    if "cluster" not in raw.frame.columns:
        sieve.frame = sieve.frame.drop("queue")
    if not sieve.frame.is_empty():
        sieve.frame = sieve.frame.sort("arrival", maintain_order=True).with_columns(job=pl.int_range(pl.len()))
        sieve.note(f"time 0 is {date_of(sieve.frame['arrival'][0])}")
    return sieve.finish(from_zero=True)
