"""How long jobs took: completion time, slowdown, queueing, responsiveness and makespan."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints
from gantline.lab.report.frames import jobs_of_frame
from gantline.lab.report.metrics.columns import finite_only
from gantline.simulator.run_columns import CANCELLED, COMPLETED, FAILED, FUTURE, REJECTED, RUNNING, WAITING, JobColumns

SLOWDOWN_THRESHOLD = 10.0
"""Seconds a job counts as at least, so that a one-second job that waited a minute does not rule the mean."""
_PARTS = ("mean", "median", "p90", "p95", "p99", "max")


def distribution(values: pl.Series | Floats, parts: Sequence[str] = _PARTS) -> dict[str, float]:
    """Mean, median, 90th, 95th and 99th percentile and maximum of the finite values, or some of these; NaN where there is none.

    Percentiles interpolate linearly between order statistics.
    """
    found = finite(values)
    if found.size == 0:
        return dict.fromkeys(parts, math.nan)
    known = {"mean": float(found.mean()), "max": float(found.max())}
    if not known.keys() >= set(parts):  # only the others need the values in order
        known |= {"median": float(np.median(found))} | dict(zip(("p90", "p95", "p99"), np.percentile(found, (90, 95, 99)).tolist()))
    return {part: known[part] for part in parts}


def cdf(values: pl.Series) -> pl.DataFrame:
    """The empirical distribution function: for each distinct value the share of values not above it."""
    distinct, counts = np.unique(finite(values), return_counts=True)
    total = max(1, int(counts.sum()))
    return pl.DataFrame({"value": distinct, "share": np.cumsum(counts) / total})


def bounded_slowdown(jobs: pl.DataFrame) -> pl.Series:
    """Completion time over run time, the run time at least ten seconds and the result at least one.

    The run time is the job's ``duration`` with the GPUs it asked for. Feitelson and Rudolph, JSSPP 1998.
    """
    return pl.Series("slowdown", slowdowns(jobs["jct"].to_numpy(), jobs["duration"].to_numpy()))


def slowdowns(jct: Floats, run_time: Floats) -> Floats:
    """The same from arrays; NaN without a completion time. A job of which no run time is known counts as one of ten seconds."""
    return np.maximum(jct / np.fmax(run_time, SLOWDOWN_THRESHOLD), 1.0)


def completed(jobs: JobColumns) -> Bools:
    """Jobs that finished their work; failed, rejected and unfinished ones have no completion time to speak of."""
    done: Bools = (jobs.state == COMPLETED) & np.isfinite(jobs.jct)
    return done


def unfinished(jobs: JobColumns) -> Bools:
    """Jobs that had not come to an end when the run did: they ran, waited, or had not arrived yet."""
    going: Bools = (jobs.state == RUNNING) | (jobs.state == WAITING) | (jobs.state == FUTURE)
    return going


def makespan(jobs: JobColumns) -> float:
    """The time from the first arrival to the last completion; NaN while jobs are unfinished, for it is not over."""
    ends = finite_only(jobs.finish[completed(jobs)])
    if unfinished(jobs).any() or ends.size == 0:
        return math.nan
    return float(ends.max() - finite_only(jobs.arrival).min())


def finite(values: pl.Series | Floats) -> Floats:
    """The values that are numbers, as an array of floats."""
    array = values.cast(pl.Float64).drop_nulls().to_numpy() if isinstance(values, pl.Series) else values
    return finite_only(array)


# Which deadlines were missed.

OUTCOMES = ("", "met", "missed", "open")
NO_DEADLINE, MET, MISSED, OPEN = range(len(OUTCOMES))


def deadline_outcome(jobs: pl.DataFrame, end: float) -> pl.Series:
    """``met``, ``missed`` or ``open`` for each job with a deadline, ``""`` for the others (see `outcomes`)."""
    return pl.Series("outcome", OUTCOMES, dtype=pl.String).gather(outcomes(jobs_of_frame(jobs), end))


def outcomes(jobs: JobColumns, end: float) -> Ints:
    """What became of each job's deadline, as a place in `OUTCOMES`.

    A job that finished late, failed, was turned away or is still there when its deadline passes has missed it; an
    unfinished one whose deadline lies beyond ``end`` is open. A run that judged its own deadlines (``met``) is believed.
    """
    in_time = jobs.finish <= jobs.deadline if jobs.met is None else jobs.met
    done = (jobs.state == COMPLETED) & np.isfinite(jobs.finish)
    lost = (jobs.state == FAILED) | (jobs.state == REJECTED) | (jobs.state == CANCELLED)
    found = np.where(done, np.where(in_time, MET, MISSED), np.where(lost | (jobs.deadline < end), MISSED, OPEN))
    return np.where(np.isnan(jobs.deadline), NO_DEADLINE, found)
