"""The elastic jobs and the cluster of several studies, and how their results are read."""

from __future__ import annotations

from typing import Any

import polars as pl

from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.source import TraceSource

RATE = "trace.jobs_per_hour"


def elastic_setting(*, rigid: bool = False, cluster: str = "gpu:8x8", **settings: Any) -> Setting:
    """150 elastic jobs on 64 GPUs by default; rigid ones are the same jobs at the size they ask for."""
    own = {**settings, **({"rigid": True} if rigid else {})}
    return Setting(TraceSource(generator="elastic", settings=own), cluster, "afs", round=60.0, costs="10")


def mean_by(results: pl.DataFrame, axis: str) -> dict[tuple[str, tuple[float, int]], float]:
    """Mean JCT by policy and (place on the axis, seed)."""
    rows = results.select("policy", axis, "seed", "jct_mean").iter_rows()
    return {(policy, (float(place), int(seed))): float(value) for policy, place, seed, value in rows}
