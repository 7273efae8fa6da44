"""Logs of Lucid's simulator (ASPLOS 2023): ``job_id,user,vc,gpu_num,submit_time,duration,model,dataset,batchsize,amp,gmem,...``.

The clock of the original is kept: zero is the first submission of a GPU job on or after 1 April 2020, and only what is submitted from
second 13,219,200 (1 September) to second 15,465,540 (26 September, 23:59) is simulated. What a job trains (network, data set, batch size
and precision) is one key, the trace's `model`; it names rows of tables of pairs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.models.sharing.pair_table import configuration_key
from gantline.traces.importers.table import Sieve, moment, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

FIRST, LAST = 13_219_200, 15_465_540
"""What is simulated, in seconds after zero; both ends belong to it."""
_FROM = 1_585_699_200.0  # 2020-04-01, in seconds since 1970
_MB_PER_GB = 1024.0
_NUMBERS = {"cpu_num": "cpus", "batchsize": "batch_size", "amp": "amp", "speed": "speed"}
_MEASURED = ("gpu_util", "gmem_util", "gmem")


def read(src: Path, *, vcs: Annotated[str, "leave out jobs of virtual clusters that this file (name,nodes) does not list"] = "") -> Trace:
    """The jobs of a Lucid log in the order of submission, on the original's clock."""
    raw = read_foreign(src, ("job_id", "vc", "gpu_num", "submit_time", "duration"))
    here = raw.frame.columns
    columns = {
        "job": text(raw, "job_id"),
        "arrival": moment(raw, "submit_time"),
        "gpus": number(raw, "gpu_num", required=True),
        "duration": number(raw, "duration", required=True),
        "queue": text(raw, "vc"),
        "model": pl.Series(_configurations(raw), dtype=pl.String),
    }
    columns |= {ours: text(raw, theirs) for theirs, ours in (("user", "user"), ("jobname", "app")) if theirs in here}
    columns |= {ours: number(raw, theirs) for theirs, ours in _NUMBERS.items() if theirs in here}
    columns |= {name: number(raw, name) for name in _MEASURED if name in here}
    if "gmem" in columns:
        columns["device_memory"] = columns["gmem"] / _MB_PER_GB
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.drop(pl.col("arrival").is_null(), "no time of submission")
    sieve.drop(pl.col("gpus") <= 0, "no GPUs")
    if vcs:
        sieve.drop(~pl.col("queue").is_in(_listed(Path(vcs))), f"of virtual clusters that are not in {vcs}")
    sieve.drop(pl.col("arrival") < _FROM, "submitted before April 2020")
    sieve.frame = sieve.frame.with_columns(pl.col("arrival") - pl.col("arrival").min())
    sieve.drop((pl.col("arrival") < FIRST) | (pl.col("arrival") > LAST), f"not submitted from second {FIRST} to second {LAST}")
    return sieve.finish(from_zero=False)


def _configurations(raw: RawTable) -> list[str]:
    """What each job trains, as one key; empty where the log does not say."""
    if "model" not in raw.frame.columns:
        return [""] * len(raw.frame)
    columns = (text(raw, name).to_list() for name in ("model", "dataset", "batchsize", "amp"))
    return [configuration_key(*cells) if cells[0] else "" for cells in zip(*columns)]


def _listed(path: Path) -> list[str]:
    raw = read_foreign(path, ("num",))
    return [name for name in text(raw, raw.frame.columns[0]).to_list() if name]
