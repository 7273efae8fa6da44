"""Estimates that err differently on different device types: declared in the trace, or found by profiling runs.

A policy sees the estimated work of a job and, per type, how much faster than listed it is believed to be there (the metric
``speed.<type>``); the clock runs on the truth. So a job whose time on the CPU is overestimated looks worth a GPU.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.core.columns import Job, Option
from gantline.core.errors import TraceError, UsageError
from gantline.core.rng import stream
from gantline.core.tables import Tables
from gantline.models.estimate_chain import Estimates
from gantline.models.sampling import RunResources, Sampler
from gantline.traces.trace import Trace


def fill_option_estimates(tables: Tables, trace: Trace, estimates: Estimates, seed: int) -> None:
    """Write what is believed into the tables, in the modes ``declared``, ``sampled`` and ``limit``."""
    if estimates.mode == "limit":
        tables.F[Job.ESTIMATE] = limits_of(trace)
        return
    if estimates.mode == "declared":
        error = declared_errors(tables, trace)
    elif estimates.mode == "sampled":
        error = sampled_errors(tables, estimates.sigma, seed)
    else:
        return
    rows = np.arange(tables.I.shape[1])
    asked = tables.options.I[Option.TYPE][tables.I[Job.OPTION_FIRST]] if len(rows) else rows
    stretch = 1.0 + error[asked, rows]
    tables.F[Job.ESTIMATE] = tables.F[Job.WORK] * stretch
    for code, name in enumerate(tables.cluster.types):
        tables.metrics[f"speed.{name}"] = stretch / (1.0 + error[code])


def limits_of(trace: Trace) -> Floats:
    """The time limit of each job in seconds; where it has none, the longest of all."""
    frame = trace.frame
    limits = frame["time_limit"].cast(pl.Float64).to_numpy() if "time_limit" in frame.columns else np.full(frame.height, np.nan)
    given = np.isfinite(limits) & (limits > 0)
    if not given.any():
        raise UsageError(
            "no job of the trace has a time limit",
            where="--estimates limit",
            fix="use --estimates history, or a trace with a column time_limit",
        )
    return np.where(given, limits, limits[given].max())


def error_column(frame: pl.DataFrame, type_name: str, with_devices: bool) -> str:
    """The column with the errors of estimates on a type: its own, else that of GPUs or CPUs in general; empty: there is none."""
    for name in (f"{type_name}_err", "gpu_err" if with_devices else "cpu_err"):
        if name in frame.columns:
            return name
    return ""


def declared_errors(tables: Tables, trace: Trace) -> Floats:
    """Relative errors per type and job, from the columns ``<type>_err`` (or ``gpu_err`` and ``cpu_err``)."""
    frame, cluster = trace.frame, tables.cluster
    found = np.zeros((len(cluster.types), frame.height))
    columns = [error_column(frame, name, cluster.gpus_of(name) > 0) for name in cluster.types]
    if not any(columns):
        raise UsageError(
            "the trace does not say how its estimates err",
            where="--estimates declared",
            fix=f"add a column such as {cluster.types[0]}_err, or use --estimates oracle or noisy:0.3",
        )
    for code, column in enumerate(columns):
        if not column:
            continue
        found[code] = frame[column].cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy()
        wrong = np.flatnonzero(~(found[code] > -1.0) | ~np.isfinite(found[code]))
        if len(wrong):
            row = int(wrong[0])
            raise TraceError(
                f"job '{frame['job'][row]}' has the error {found[code, row]:g}, which leaves no time at all",
                file=trace.source,
                line=row + 2,
                field=column,
                fix="errors are relative and above -1",
            )
    return found


def sampled_errors(tables: Tables, sigma: float, seed: int) -> Floats:
    """Relative errors per type and job that profiling leaves: two short runs per type, each off by a part, and a line through them."""
    options, sampler = tables.options, Sampler(shortest=0.0)
    found = np.zeros((len(tables.cluster.types), tables.I.shape[1]))
    for row, (first, count) in enumerate(zip(tables.I[Job.OPTION_FIRST].tolist(), tables.I[Job.OPTION_COUNT].tolist())):
        rng = stream(seed, row, "profiling")
        seconds = {
            int(options.I[Option.TYPE, k]): float(tables.F[Job.WORK, row] / options.F[Option.RATE, k]) for k in range(first, first + count)
        }
        runs = sampler.plan_runs([RunResources(kind) for kind in seconds])
        made = [sampler.measure(run, seconds[run.resources.type], rng, error=sigma) for run in runs]
        for kind, estimate in sampler.fit(made).items():
            found[kind, row] = estimate.value / seconds[kind] - 1.0
    return found
