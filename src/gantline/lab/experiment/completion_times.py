"""Distributions of completion times in a sweep, which keeps the jobs of every run."""

from __future__ import annotations

import polars as pl

from gantline.core.errors import UsageError
from gantline.lab.experiment.charts import varies
from gantline.lab.experiment.outcome import DONE
from gantline.lab.experiment.results import doubt_of
from gantline.lab.experiment.sweep_runs import SweepRuns
from gantline.lab.report.doubts import MARK
from gantline.lab.report.figures import Chart
from gantline.lab.report.figures.completion import distribution_chart
from gantline.lab.report.frames import completed
from gantline.lab.report.metrics.completion import finite

MOST = 8  # curves that a figure can hold


def completion_times(sweep: SweepRuns) -> Chart:
    """A curve per policy and place of the other axes: the tracked jobs of all seeds together."""
    found: dict[str, dict[str, list[pl.DataFrame]]] = {}
    doubts: dict[str, list[str]] = {}
    for case, record in zip(sweep.cases, sweep.records):
        own = [f"{axis}={value}" for axis, value in case.axes.items() if axis != "seed" and varies(sweep.results, axis)]
        name = " ".join([case.policy, *own])
        if record.state != DONE:
            continue
        jobs = completed(record.jobs().filter("tracked")).select("jct")
        found.setdefault(name, {}).setdefault(record.summary["log_hash"], []).append(jobs)
        doubts.setdefault(name, []).append(record.summary.get("doubts", ""))
    if not found:
        raise UsageError("there is no run to draw", where="plot jct-cdf", fix="run the sweep again")
    if len(found) > MOST:
        raise UsageError(f"{len(found)} curves are more than a figure can hold", where="plot jct-cdf", fix="draw 'load' or 'pareto'")
    samples = {name + (MARK if doubt_of(doubts[name]) else ""): finite(pl.concat(_of_seeds(jobs))["jct"]) for name, jobs in found.items()}
    return distribution_chart("jct-cdf", "Job completion time", "job completion time", "jobs", samples)


def _of_seeds(jobs: dict[str, list[pl.DataFrame]]) -> list[pl.DataFrame]:
    """The jobs of every seed, so that each seed weighs the same; of one run where all seeds gave the same."""
    runs = list(jobs.values())
    return runs[0][:1] if len(runs) == 1 else [one for same in runs for one in same]
