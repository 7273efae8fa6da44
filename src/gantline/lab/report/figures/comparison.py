"""Many runs at a glance: spread over seeds, and which policies no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.panels import Axis, Bars, Box, Legend, Line, Panel, Points, brief, floats, log_duration_axis, unit_for
from gantline.lab.report.frames import RunLike, completed, settled
from gantline.lab.report.labels import names_of
from gantline.lab.report.metrics import Window, cdf, tracked_window
from gantline.lab.report.metrics.catalogue import BY_KEY, Metric
from gantline.lab.report.metrics.completion import finite


def boxes_over_seeds(points: pl.DataFrame, metric: str = "jct_mean") -> Chart:
    """A box per policy over its seeds. ``points`` has the columns ``name`` and ``value``, a row per seed."""
    known = BY_KEY[metric]
    axis, scale = metric_axis(known, floats(points["value"].to_numpy()), from_zero=True)
    boxes, ticks = [], []
    for index, name in enumerate(points["name"].unique(maintain_order=True).to_list()):
        values = floats(points.filter(pl.col("name") == name)["value"].to_numpy()) / scale
        boxes.append(Box(str(name), float(index), values, colour=index))
        ticks.append((float(index), brief(str(name))))
    x = Axis("policy", low=-0.6, high=len(boxes) - 0.4, ticks=tuple(ticks))
    counts = sorted({box.values.size for box in boxes})
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    note = f"{runs} runs each. Box: middle half; line: median; whiskers: smallest and largest; points: single seeds."
    return Chart(f"seeds-{metric}", f"{known.title} over seeds", (Panel(x, axis, tuple(boxes)),), (note,))


def pareto_front(points: pl.DataFrame, x: str = "jct_mean", y: str = "jain_users") -> Chart:
    """Two metrics against each other; the front joins the runs that no other run beats in both.

    ``points`` has the column ``name`` and one column per metric.
    """
    first, second = BY_KEY[x], BY_KEY[y]
    known = points.with_row_index("number").filter(pl.col(x).is_finite() & pl.col(y).is_finite())
    xs, ys = floats(known[x].to_numpy()), floats(known[y].to_numpy())
    x_axis, x_scale = metric_axis(first, xs)
    y_axis, y_scale = metric_axis(second, ys)
    best = not_dominated(xs, ys, first.better == "higher", second.better == "higher")
    order = np.argsort(xs[best], kind="stable")
    front = Line("front", xs[best][order] / x_scale, ys[best][order] / y_scale, quiet=True)
    # Nothing lies on the better side of the front, so its names have room there.
    good = (1 if first.better == "higher" else -1, 1 if second.better == "higher" else -1)
    bad = (-good[0], -good[1])
    layers: list[Line | Points] = [front]
    for at, (number, name) in enumerate(known.select("number", pl.col("name").cast(pl.String)).iter_rows()):
        text, toward = brief(name), good if best[at] else bad
        layers.append(Points(text, xs[at : at + 1] / x_scale, ys[at : at + 1] / y_scale, number, (text,), toward))
    note = f"Better: {first.better} {first.title}, {second.better} {second.title}. The line joins the runs that no other one beats in both."
    return Chart("pareto", f"{first.title} against {second.title}", (Panel(x_axis, y_axis, tuple(layers)),), (note,))


def not_dominated(xs: Floats, ys: Floats, high_x: bool, high_y: bool) -> np.ndarray:
    """Which points no other point beats: not worse in both and better in one."""
    a, b = (-xs if high_x else xs), (-ys if high_y else ys)
    as_good = (a[:, None] <= a[None, :]) & (b[:, None] <= b[None, :])
    better = (a[:, None] < a[None, :]) | (b[:, None] < b[None, :])
    return np.asarray(~(as_good & better).any(axis=0))


def metric_axis(metric: Metric, values: Floats, from_zero: bool = False) -> tuple[Axis, float]:
    """An axis for a metric with a margin around its values, and the number to divide values by."""
    finite = values[np.isfinite(values)]
    scale, unit, percent = 1.0, "", metric.unit == "share"
    if metric.unit == "s":
        chosen = unit_for(float(finite.max()) if finite.size else 0.0)
        scale, unit = chosen.seconds, chosen.name
    elif metric.unit in ("jobs", "kWh", "kg", "h"):
        unit = metric.unit
    if finite.size == 0:
        return Axis(metric.title, unit, percent=percent), scale
    low, high = float(finite.min()) / scale, float(finite.max()) / scale
    room = 0.15 * (high - low) or 0.1 * abs(high) or 1.0
    bottom = 0.0 if from_zero and low >= 0 else low - room
    return Axis(metric.title, unit, percent=percent, low=bottom, high=high + room), scale


# Completion times: their distribution, and their mean against the load.

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


# What a trace looks like: sizes of jobs, their durations, the hours at which they arrive.

MOST_SIZES = 12


def size_shares(gpus: pl.Series, durations: pl.Series) -> Chart:
    """For each GPU count its share of the jobs and its share of the GPU time."""
    table = (
        pl.DataFrame({"gpus": gpus, "time": gpus * durations}).group_by("gpus").agg(jobs=pl.len(), time=pl.col("time").sum()).sort("gpus")
    )
    notes: tuple[str, ...] = ()
    if table.height > MOST_SIZES:
        frequent = table.top_k(MOST_SIZES, by="jobs").sort("gpus")
        rest = 1.0 - float(frequent["jobs"].sum()) / float(table["jobs"].sum())
        notes = (f"The {MOST_SIZES} most frequent of {table.height} sizes; the others are {rest:.1%} of the jobs.",)
    else:
        frequent = table
    place = np.arange(frequent.height, dtype=np.float64)
    jobs = floats(frequent["jobs"].to_numpy()) / max(1.0, float(table["jobs"].sum()))
    time = floats(frequent["time"].to_numpy()) / max(1e-9, float(table["time"].sum()))
    x = Axis("GPUs of a job", ticks=tuple((float(i), str(size)) for i, size in enumerate(frequent["gpus"].to_list())))
    layers = (Bars("jobs", place, jobs, 0, 0, 2), Bars("GPU time", place, time, 1, 1, 2))
    panel = Panel(x, Axis("share", percent=True, low=0.0), layers, legend="above")
    return Chart("sizes", "Sizes of jobs", (panel,), notes)


def duration_cdf(durations: pl.Series) -> Chart:
    """The distribution of run times with the requested GPUs."""
    return distribution_chart("durations", "Durations of jobs", "duration", "jobs", {"jobs": finite(durations)})


def hours_of_day(arrivals: pl.Series) -> Chart:
    """The share of jobs that arrive in each hour of the day, counted from the origin of the trace's clock."""
    hours = (finite(arrivals) // 3600 % 24).astype(np.int64)
    counts = np.bincount(hours, minlength=24) / max(1, hours.size)
    ticks = tuple((float(hour), str(hour)) for hour in range(0, 24, 3))
    bars = (Bars("arrivals", np.arange(24.0), floats(counts)),)
    panel = Panel(Axis("hour of the day", "h", ticks=ticks), Axis("share of arrivals", percent=True, low=0.0), bars)
    note = "Hours are those of the trace's clock: its time 0 need not be midnight."
    return Chart("hours", "Arrivals by hour of the day", (panel,), (note,))
