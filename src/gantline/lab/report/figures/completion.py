"""Completion times: their distribution, and their mean against the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.comparison import metric_axis
from gantline.lab.report.figures.durations import log_duration_axis
from gantline.lab.report.figures.panels import Axis, Legend, Line, Panel, brief, floats
from gantline.lab.report.frames import RunLike, completed, settled
from gantline.lab.report.metrics import BY_KEY, Window, cdf, tracked_window
from gantline.lab.report.metrics.completion import finite
from gantline.lab.report.names import names_of

CURVE_POINTS = 600


def jct_cdf(runs: Sequence[RunLike], window: Window | None = None) -> Chart:
    """The share of jobs that completed within a time, a curve per run, over a logarithmic time axis: of the jobs that count."""
    counted = [(window or tracked_window(run.summary)).select(settled(run).jobs) for run in runs]
    samples = {name: finite(completed(jobs)["jct"]) for name, jobs in zip(names_of(runs), counted)}
    return distribution_chart("jct-cdf", "Job completion time", "job completion time", "jobs", samples)


def distribution_chart(name: str, title: str, label: str, what: str, samples: dict[str, Floats]) -> Chart:
    """Empirical distribution functions of durations."""
    lines, thinned = [], False
    for index, (series, values) in enumerate(samples.items()):
        curve = cdf(pl.Series(values[values > 0]))
        share, value = curve["share"].to_numpy(), curve["value"].to_numpy()
        if value.size > CURVE_POINTS:
            # Even steps of probability lose nothing that a screen could show; both ends stay.
            rows = np.unique(np.searchsorted(share, np.linspace(share[0], 1.0 - 1e-12, CURVE_POINTS)))
            value, share = value[rows], share[rows]
            thinned = True
        if value.size:
            lines.append(Line(brief(series), value, share, colour=index, step=True))
    everything = np.concatenate([line.x for line in lines]) if lines else np.zeros(0)
    y = Axis(f"share of {what}", percent=True, low=0.0, high=1.0)
    legend: Legend = "corner" if len(samples) > 1 else "none"
    panel = Panel(log_duration_axis(label, everything), y, tuple(lines), legend)
    sizes = [f"{values.size:,}" for values in samples.values()]
    counted = f"{sizes[0]} {what}" if len(set(sizes)) == 1 else f"{', '.join(sizes)} {what}"
    note = f"Drawn through at most {CURVE_POINTS} quantiles of {counted}."
    return Chart(name, title, (panel,), (note,) if thinned else ())


def jct_against_load(points: pl.DataFrame, load: str = "load", unit: str = "jobs/h", metric: str = "jct_mean") -> Chart:
    """Mean completion time, or another metric, against load: a curve per policy with its interval.

    ``points`` has the columns ``name``, ``load``, ``value`` and, where known, ``low``, ``high`` (all times in seconds) and ``runs``.
    """
    known = BY_KEY[metric]
    axis, scale = metric_axis(known, floats(points["value"].to_numpy()), from_zero=True)
    axis = replace(axis, high=None)  # bands reach higher than the means
    banded = {"low", "high"} <= set(points.columns)
    lines = []
    for index, (name, rows) in enumerate(_by_name(points)):
        ordered = rows.sort("load")
        low, high = (floats(ordered[c].to_numpy()) / scale if banded else None for c in ("low", "high"))
        x, y = floats(ordered["load"].to_numpy()), floats(ordered["value"].to_numpy()) / scale
        lines.append(Line(brief(name), x, y, colour=index, markers=True, low=low, high=high))
    panel = Panel(Axis(load, unit), axis, tuple(lines), legend="direct")
    notes = (_basis(points, banded),) if "runs" in points.columns else ()
    name = "jct-load" if metric == "jct_mean" else f"{metric}-load"
    return Chart(name, f"{known.title} against {load}", (panel,), notes)


def _basis(points: pl.DataFrame, banded: bool) -> str:
    """What a point is the mean of, and what the band is."""
    counts = points["runs"].to_list()
    fewest, most = min(counts), max(counts)
    runs = f"{most}" if fewest == most else f"{fewest} to {most}"
    if most == 1:
        return "Each point is one run."
    return f"Points: means of {runs} runs{'; bands: 95 % intervals of the mean over seeds' if banded else ', too few for an interval'}."


def _by_name(points: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    names = points["name"].unique(maintain_order=True).to_list()
    return [(str(name), points.filter(pl.col("name") == name)) for name in names]
