"""Many runs at a glance: spread over seeds, and which policies no other one beats."""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.durations import unit_for
from gantline.lab.report.figures.panels import Axis, Box, Line, Panel, Points, brief, floats
from gantline.lab.report.metrics.catalogue import BY_KEY, Metric


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
