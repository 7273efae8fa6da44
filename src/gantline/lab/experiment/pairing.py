"""Pairs: the same seed, or the same job of one run, under two policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.lab.experiment.intervals import ratio_error
from gantline.lab.report.frames import completed
from gantline.lab.report.metrics import bounded_slowdown

PER_JOB = {
    "jct_mean": "jct",
    "queueing_mean": "queueing",
    "responsiveness_mean": "responsiveness",
    "slowdown_mean": "slowdown",
}
"""Metrics that are means over jobs, and the column whose mean they are."""
STRETCHES = 10

_NUMBERS = [name for column in PER_JOB.values() for name in (column, f"{column}_against")]
_SCHEMA = {"job": pl.String, "policy": pl.String, "against": pl.String, "seed": pl.Int64} | dict.fromkeys(
    [*_NUMBERS, "difference"], pl.Float64
)


@dataclass(frozen=True)
class JobsOfRun:
    """The jobs of one run: which policy, which seed, what happened."""

    policy: str
    seed: int
    jobs: Callable[[], pl.DataFrame]
    """Reads them, because most comparisons need the metrics of runs alone."""


def paired_jobs(runs: Sequence[JobsOfRun], against: str) -> pl.DataFrame:
    """A row per tracked job, seed and policy other than `against` that ended under both, with its times under each."""
    base = {run.seed: _ended(run.jobs()) for run in runs if run.policy == against}
    found = []
    for run in runs:
        if run.policy == against or run.seed not in base:
            continue
        both = _ended(run.jobs()).join(base[run.seed], on="job", suffix="_against", maintain_order="left")
        labels = {"policy": pl.lit(run.policy), "against": pl.lit(against), "seed": pl.lit(run.seed, dtype=pl.Int64)}
        found.append(both.select("job", *(value.alias(name) for name, value in labels.items()), *_NUMBERS))
    return pl.concat(found).with_columns(difference=pl.col("jct") - pl.col("jct_against")) if found else pl.DataFrame(schema=_SCHEMA)


def spread_of_stretches(pairs: pl.DataFrame, policy: str, metric: str) -> float:
    """How much a change might vary from run to run, estimated from the stretches of one run: consecutive jobs share their queue, so that
    stretches, not jobs, are what varies; the jackknife's error over them. NaN where there are too few jobs."""
    own, name = pairs.filter((pl.col("policy") == policy) & (pl.col("seed") == pl.col("seed").min())), PER_JOB[metric]
    columns = np.stack([own[f"{name}_against"].to_numpy(), own[name].to_numpy()])
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    if columns.shape[1] < 2 * STRETCHES:
        return math.nan
    sums = np.stack([part.sum(axis=1) for part in np.array_split(columns, STRETCHES, axis=1)], axis=1)
    return ratio_error(sums[0], sums[1])


def seed_columns(values: pl.DataFrame, metric: str, policy: str, against: str) -> Floats:
    """The metric under the other policy and under this one for every seed that both have, shape (2, seeds)."""
    known = values.filter(pl.col(metric).is_finite())
    left = known.filter(pl.col("policy") == against).select("seed", old=metric)
    both = known.filter(pl.col("policy") == policy).select("seed", new=metric).join(left, on="seed").sort("seed")
    return np.stack([both["old"].to_numpy(), both["new"].to_numpy()])


def _ended(jobs: pl.DataFrame) -> pl.DataFrame:
    counted = completed(jobs.filter("tracked") if "tracked" in jobs.columns else jobs)
    return counted.select("job", "jct", "queueing", "responsiveness", slowdown=bounded_slowdown(counted))
