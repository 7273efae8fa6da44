"""Figures of a sweep, from its table of results: a metric against load, its spread over seeds, two metrics against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.intervals import FEWEST, mean_interval
from gantline.lab.experiment.records import DONE
from gantline.lab.experiment.results import SweepRuns, axes_of, doubt_of, runs_that_count, same_runs, varies
from gantline.lab.report.figures import Chart, boxes_over_seeds, jct_against_load, pareto_front
from gantline.lab.report.figures.comparison import distribution_chart
from gantline.lab.report.frames import completed
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.metrics.completion import finite
from gantline.lab.report.run_warnings import MARK

FEWEST_IN_TRADE_OFF = 3


def charts_of(results: pl.DataFrame, load: str = "load", unit: str = "") -> list[Chart]:
    """What the axes of the sweep allow: JCT against `load` where it varies, boxes where seeds do, a trade-off of several policies."""
    done = results.filter(pl.col("state") == "done")
    found = []
    if varies(done, load) and done[load].dtype.is_numeric():
        found.append(chart_against(done, load, unit=unit))
    if varies(done, "seed") and not varies(done, load) and not same_runs(done):
        found.append(boxes_over_seeds(named_curves(done).select("name", value="jct_mean")))
    if not varies(done, load) and named_curves(done)["name"].n_unique() >= FEWEST_IN_TRADE_OFF:
        found.append(trade_off(done))
    return found


def chart_of_sweep(name: str, results: pl.DataFrame, by: str, metrics: Sequence[str], where: Mapping[str, Any]) -> Chart:
    """One figure of a sweep's results, of the runs with the values of the axes in `where`."""
    if name not in ("load", "seeds", "pareto"):
        raise NotFoundError(f"no figure '{name}' of a sweep", where="plot", fix=near(name, ("load", "seeds", "pareto")))
    for metric in metrics:
        if metric not in BY_KEY:
            raise NotFoundError(f"no metric '{metric}'", where="--metric", fix=near(metric, BY_KEY))
    done = at_values(results.filter(pl.col("state") == "done"), where)
    if done.is_empty():
        raise UsageError("there is no run to draw", where=f"plot {name}", fix="run the sweep again, or choose others with --where")
    first = metrics[0] if metrics else "jct_mean"
    if name == "load":
        require_axis(done, by or "load")
        return chart_against(done, by or "load", first)
    if name == "seeds":
        if not varies(done, "seed"):
            raise UsageError("the sweep has one seed", where="plot seeds", fix="sweep over --seeds")
        return boxes_over_seeds(named_curves(done).select("name", value=first), first)
    return trade_off(done, first, metrics[1] if len(metrics) > 1 else "")


def chart_against(results: pl.DataFrame, load: str, metric: str = "jct_mean", unit: str = "") -> Chart:
    """A metric against a load that is an axis of the sweep."""
    label = "load" if unit else load.rpartition(".")[2].replace("_", " ")
    return jct_against_load(points_against(results, load, metric), label, unit, metric)


def trade_off(results: pl.DataFrame, x: str = "jct_mean", y: str = "") -> Chart:
    """Two metrics of every policy, means over seeds; by default completion time and fairness, or makespan without users."""
    y = y or ("jain_users" if results["jain_users"].is_finite().all() else "makespan")
    return pareto_front(named_curves(results).group_by("name", maintain_order=True).agg(pl.col(x, y).mean()), x, y)


def points_against(results: pl.DataFrame, load: str, metric: str = "jct_mean") -> pl.DataFrame:
    """A row per curve and load: the mean over seeds, with an interval where there are enough of them."""
    named = named_curves(results, but=(load, "seed"))
    rows: list[dict[str, Any]] = []
    for (name, value), group in named.group_by(["name", load], maintain_order=True):
        interval = mean_interval(runs_that_count(group)[metric].drop_nans().to_numpy())
        found = {"value": interval.value, "low": interval.low, "high": interval.high, "runs": interval.samples}
        rows.append({"name": name, "load": float(value), **found})
    points = pl.DataFrame(rows).filter(pl.col("value").is_finite())
    enough = bool(np.isfinite(points["low"].to_numpy()).all()) and bool((points["runs"] >= FEWEST).all())
    return points if enough else points.drop("low", "high")


def named_curves(results: pl.DataFrame, but: tuple[str, ...] = ("seed",)) -> pl.DataFrame:
    """The results under a `name` that differs from curve to curve: the policy, and the other axes that vary."""
    own = [axis for axis in axes_of(results) if axis not in but and varies(results, axis) and results[axis].null_count() == 0]
    parts = [pl.lit(f" {axis}=") + pl.col(axis).cast(pl.String) for axis in own]
    named = results.with_columns(name=pl.concat_str(pl.col("policy"), *parts))
    curves = named.group_by("name", maintain_order=True).agg(pl.col("doubts"))
    doubtful = [name for name, doubts in curves.iter_rows() if doubt_of(doubts)]
    return named.with_columns(name=pl.when(pl.col("name").is_in(doubtful)).then(pl.col("name") + MARK).otherwise(pl.col("name")))


def at_values(results: pl.DataFrame, where: Mapping[str, Any]) -> pl.DataFrame:
    """The runs with these values of axes, which are given as text."""
    for axis, value in where.items():
        known = [name for name in ("policy", *axes_of(results)) if varies(results, name)]
        if axis not in known:
            raise NotFoundError(f"the sweep has no axis '{axis}'", where="--where", fix=near(axis, known))
        try:
            wanted = float(value) if results[axis].dtype.is_numeric() else value
        except ValueError:
            raise UsageError(f"'{value}' is not a number", where=f"--where {axis}") from None
        results = results.filter(pl.col(axis) == wanted)
    return results


def require_axis(results: pl.DataFrame, axis: str) -> None:
    """Refuse a figure over an axis that the sweep does not have."""
    if not varies(results, axis) or not results[axis].dtype.is_numeric():
        known = [name for name in axes_of(results) if varies(results, name) and results[name].dtype.is_numeric()]
        fix = f"name one with --by: {', '.join(known)}" if known else "sweep over --load or --seeds"
        raise UsageError(f"the sweep has fewer than two numbers of '{axis}'", where="plot", fix=fix)


# Distributions of completion times in a sweep, which keeps the jobs of every run.

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
