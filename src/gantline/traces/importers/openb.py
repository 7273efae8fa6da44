"""Alibaba's GPU-sharing trace of 2023 (Weng et al., ATC 2023): ``openb_pod_list_*.csv``.

One pod a row: ``name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,
scheduled_time``. A pod of one GPU may ask for a part of it (``gpu_milli`` below 1000), kept as ``gpu_demand``. A
``gpu_spec`` such as ``V100M16|V100M32`` becomes one alternative per type. Pods still running when the log was taken
have a time of deletion at its end; pods that were never scheduled have no ``scheduled_time``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.exact import divide
from gantline.traces.importers.sieve import Sieve
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.trace import Trace

_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time",
           "scheduled_time")  # fmt: skip
_OUTCOMES = {"Succeeded": "completed", "Failed": "failed"}
_GB_PER_MIB = 2**20 / 1e9


def read(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the pods that ask for CPUs only"] = False,
) -> Trace:
    """The pods of the list as jobs, in the order of creation."""
    raw = read_foreign(src, _NEEDED)
    spec = text(raw, "gpu_spec")
    frame = pl.DataFrame(
        {
            "job": text(raw, "name"),
            "arrival": number(raw, "creation_time"),
            "gpus": number(raw, "num_gpu").fill_null(0),
            "duration": number(raw, "deletion_time") - number(raw, "scheduled_time"),
            "queue": text(raw, "qos"),
            "type": pl.select(pl.when(~spec.str.contains("|", literal=True)).then(spec).otherwise(pl.lit(""))).to_series(),
            "cpus": divide(number(raw, "cpu_milli"), 1000),
            "memory": number(raw, "memory_mib") * _GB_PER_MIB,
            "outcome": text(raw, "pod_phase").replace_strict(_OUTCOMES, default="", return_dtype=pl.String),
            "gpu_demand": divide(number(raw, "num_gpu") * number(raw, "gpu_milli"), 1000),
            "started": number(raw, "scheduled_time"),
            "_spec": spec,
            "_placed": number(raw, "scheduled_time"),
        }
    )
    sieve = Sieve(frame, raw)
    sieve.drop(pl.col("arrival").is_null(), "no time of creation")
    sieve.drop(pl.col("_placed").is_null(), "never scheduled")
    sieve.drop(pl.col("duration").is_null() | (pl.col("duration") <= 0), "no positive duration")
    without = pl.col("gpus") == 0
    sieve.drop(without & ~(pl.col("cpus") > 0) if cpu_jobs else without, "no GPUs")
    parts = int(((sieve.frame["gpu_demand"] < sieve.frame["gpus"]) & (sieve.frame["gpus"] > 0)).sum())
    if parts:
        sieve.note(f"rounded {parts} requests for a part of a GPU up to a whole one (exact in gpu_demand: --policy sharing packs them)")
    if sieve.frame["_spec"].str.contains("|", literal=True).any():
        sieve.frame = sieve.frame.with_columns(options=_alternatives())
    if not sieve.frame.is_empty():
        sieve.note(f"time 0 is second {sieve.frame['arrival'].to_numpy().min():.0f} of the original")
    return sieve.finish(from_zero=True)


def _alternatives() -> pl.Expr:
    """``A|B`` as ``A:2=60|B:2=60``: the same number of GPUs for the same time on either type."""
    way = pl.format(":{}={}", pl.col("gpus").cast(pl.Int64, strict=False), pl.col("duration"))
    both = pl.concat_str(pl.col("_spec").str.replace_all("|", way + "|", literal=True), way)
    return pl.when(pl.col("_spec").str.contains("|", literal=True)).then(both).otherwise(pl.lit(""))
