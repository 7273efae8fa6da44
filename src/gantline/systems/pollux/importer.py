"""Pollux (OSDI 2021) and Sia (SOSP 2023) workloads: ``name,time,application,num_replicas,batch_size``.

These files list which network is trained with how many GPUs and samples per step, but not for how long: that follows
from goodput models. The duration given here is nominal: the application's seconds on one T4 (training samples of all
epochs over the best measured samples per second) divided by the GPUs. Policies that model goodput use `app`,
`batch_size` and their own profiles instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.core.errors import UsageError
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace

GPU_SECONDS: Mapping[str, float] = {
    "cifar10": 3_400.0,
    "bert": 13_600.0,
    "deepspeech2": 18_100.0,
    "yolov3": 29_700.0,
    "imagenet": 531_000.0,
    "ncf": 32.0,
    "gpt_pmp": 157_000.0,  # on A100s, for no T4 holds it
}
_HYBRID = ("gpt_pmp",)  # trained in pipelines
_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
_KINDS = {"adaptive": "adaptive", "scale-gpus": "strong-scaling", "rigid": "rigid", "hybrid": "hybrid"}  # Sia's categories


def read(
    src: Path,
    *,
    gpu_seconds: Annotated[str, "seconds on one GPU for more applications: gpt=90000,cifar10=3000"] = "",
    first: Annotated[int, "keep only so many jobs, the first ones (0: all)"] = 0,
) -> Trace:
    """The jobs of a Pollux or Sia workload; times are kept as they are, other columns too."""
    raw = read_foreign(src, _COLUMNS)
    known = {**GPU_SECONDS, **_parse(gpu_seconds)}
    app = text(raw, "application")
    replicas = number(raw, "num_replicas", required=True)
    single = app.replace_strict(known, default=None, return_dtype=pl.Float64)
    if single.null_count():
        row = int(single.is_null().arg_true()[0])
        fix = f"give its seconds on one GPU: gpu_seconds={app[row]}=3600; known: {', '.join(known)}"
        raise raw.error(f"no run time is known for '{app[row]}'", row=row, field="application", fix=fix)
    frame = pl.DataFrame(
        {
            "job": text(raw, "name"),
            "arrival": number(raw, "time", required=True),
            "gpus": replicas,
            "duration": single / replicas,
            "app": app,
            "model": app,
            "batch_size": number(raw, "batch_size", required=True),
        }
    )
    if "category" in raw.frame.columns:
        category = text(raw, "category").fill_null("")
        unknown = ~category.is_in([*_KINDS, ""])
        if unknown.any():
            row = int(unknown.arg_true()[0])
            raise raw.error(f"'{category[row]}' is no category", row=row, field="category", fix="one of " + ", ".join(_KINDS))
        frame = frame.with_columns(kind=category.replace(_KINDS))
    if app.is_in(_HYBRID).any():
        kind = pl.col("kind") if "kind" in frame.columns else pl.lit("")
        frame = frame.with_columns(kind=pl.when((kind == "") & pl.lit(app.is_in(_HYBRID))).then(pl.lit("hybrid")).otherwise(kind))
    others = [column for column in raw.frame if column.name not in (*_COLUMNS, "category")]
    sieve = Sieve(frame.with_columns(others), raw)
    if first:
        sieve.drop(pl.col("arrival").rank("ordinal") > first, f"after the first {first}")
    sieve.note("durations are nominal: seconds on one T4 divided by the GPUs (the file gives none)")
    return sieve.finish(from_zero=False)


def _parse(given: str) -> dict[str, float]:
    found = {}
    for part in filter(None, given.split(",")):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise UsageError(f"option 'gpu_seconds': '{part}' is not NAME=SECONDS", fix="such as gpt=90000") from error
    return found
