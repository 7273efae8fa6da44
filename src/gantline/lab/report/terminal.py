"""Summaries for a terminal: rich renderables with small inline charts. Nothing here prints.

Console().print(run_summary(run))
Console().print(comparison(runs))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gantline.core.fields import human_seconds
from gantline.lab.report.frames import RunLike, completed, settled, span_of
from gantline.lab.report.labels import best_of, known_metrics, names_of, spell
from gantline.lab.report.metrics import bin_means, measure, per_group, per_type, steadiness, with_utilization
from gantline.lab.report.metrics.completion import finite
from gantline.lab.report.run_warnings import (
    UNSTEADY,
    doubts_of_run,
    free_stops,
    links_apart,
    no_contest,
    policies_in_charge,
    turned_away,
    ways_left_out,
    wholes_for_parts,
)

BLOCKS = " ▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"
_MOST_QUEUES = 12
HEADLINE = (
    "jobs",
    "completed",
    "unfinished",
    "rejected",
    "jct_mean",
    "jct_median",
    "jct_p99",
    "slowdown_mean",
    "responsiveness_mean",
    "makespan",
    "utilization",
    "fragmentation",
    "typical_fragmentation",
    "preemptions",
    "resizes",
    "migrations",
    "time_lost",
    "cross_node",
    "cross_rack",
    "communication",
    "link_overload",
    "money",
    "energy",
    "jain_users",
    "rho_mean",
    "deadline_misses",
    "deadline_satisfaction",
)


def run_summary(run: RunLike, measures: Mapping[str, float] | None = None, width: int = 60) -> RenderableType:
    """One run: its numbers, the queue and the utilization over time, the distribution of completion times."""
    run = settled(run)
    found = measure(run) if measures is None else measures
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    for metric in known_metrics([found]):
        if metric.key in HEADLINE:
            table.add_row(metric.title, spell(metric, found[metric.key]))
    parts: list[RenderableType] = [Text(printable(names_of([run])[0]), style="bold"), table, Text()]
    parts += [timeline(run, width), Text(), cdf_bars(run, width)]
    parts += _groups(run)
    guard = steadiness(run)
    warnings = [doubt for doubt in doubts_of_run(run) if doubt != UNSTEADY] + [str(guard)] * (not guard.steady)
    remarks = (free_stops, wholes_for_parts, ways_left_out, links_apart, turned_away, no_contest)
    for warning in (*warnings, *(remark(run.summary) for remark in remarks)):
        parts += [Text(), Text(warning, style="yellow")] if warning else []
    if decided := policies_in_charge(run):
        parts += [Text(), Text(printable(decided))]
    return Group(*parts)


def _groups(run: RunLike) -> list[RenderableType]:
    """Use, queue and fragmentation per device type, and what queues got, where there are several."""
    kinds = per_type(run)
    parts: list[RenderableType] = []
    if kinds.height > 1:
        rows = [
            (kind, f"{gpus} GPUs", f"{100 * used:.1f} % busy", f"{queued:.1f} waiting", f"{100 * stranded:.1f} % fragmented")
            for kind, gpus, _, _, used, queued, stranded in kinds.iter_rows()
        ]
        parts += [Text(), _plain_table(rows)]
    if 1 < run.jobs["queue"].n_unique() <= _MOST_QUEUES:
        each = per_group(run.jobs, "queue", span_of(run)[1])
        queues = each.select("queue", "jobs", "gpu_hours", pl.col("queueing_mean").fill_null(0.0)).iter_rows()
        lines = [
            (name or "(none)", f"{jobs} jobs", f"{hours:.1f} GPU-h", f"{human_seconds(queued)} queueing")
            for name, jobs, hours, queued in queues
        ]
        parts += [Text(), _plain_table(lines)]
    return parts


def _plain_table(rows: Sequence[Sequence[str]]) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False)
    for first, *others in rows:
        table.add_row(Text(printable(first), style="dim"), *others)
    return table


def comparison(runs: Sequence[RunLike], measures: Sequence[Mapping[str, float]] | None = None) -> RenderableType:
    """Several runs: a row per metric, a column per run, the best value in bold; below it a line of the queue for each."""
    names, runs = names_of(runs), [settled(run) for run in runs]
    found = [measure(run) for run in runs] if measures is None else measures
    doubts = [doubts_of_run(run) for run in runs]
    doubtful = [index for index, doubt in enumerate(doubts) if doubt]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Metric", style="dim")
    for name in names:
        table.add_column(Text(printable(name)), justify="right")
    for metric in known_metrics(found):
        if metric.key in HEADLINE:
            values = [one[metric.key] for one in found]
            best = best_of(metric, values, doubtful)
            cells = (Text(spell(metric, value), style="bold green" if i in best else "") for i, value in enumerate(values))
            table.add_row(metric.title, *cells)
    notes = [Text(f"{printable(names[index])}: {'; '.join(doubts[index])}", style="yellow") for index in doubtful]
    idle = [index for index, run in enumerate(runs) if no_contest(run.summary)]
    notes += [Text(f"{printable(names[index])}: {no_contest(runs[index].summary)}", style="yellow") for index in idle]
    return Group(table, *notes, Text(), queue_lines(names, runs))


def queue_lines(names: Sequence[str], runs: Sequence[RunLike]) -> RenderableType:
    """The queue of each run over time, all to one scale."""
    curves = [_curve(run, "queued", 40) for run in runs]
    top = max((float(curve.max()) for curve in curves if curve.size), default=0.0)
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, run, curve in zip(names, runs, curves):
        peak = Text(f"up to {_longest_queue(run):.0f} waiting", style="dim")
        table.add_row(Text(printable(name)), Text(sparkline(curve, top), style="cyan"), peak)
    return table


def timeline(run: RunLike, width: int = 60) -> RenderableType:
    """Queue and utilization as two lines of blocks over the same time."""
    start, end = span_of(run)
    queue, used = _curve(run, "queued", width), _curve(run, "utilization", width)
    table = Table(box=None, show_header=False, pad_edge=False)
    top = float(queue.max()) if queue.size else 0.0
    peak = Text(f"up to {_longest_queue(run):.0f}", style="dim")
    table.add_row(Text("waiting", style="dim"), Text(sparkline(queue, top), style="cyan"), peak)
    table.add_row(Text("busy", style="dim"), Text(sparkline(used, 1.0), style="green"), Text("of 100 %", style="dim"))
    table.add_row("", Text(f"0{human_seconds(end - start).rjust(width - 1)}", style="dim"))
    return table


def cdf_bars(run: RunLike, width: int = 60) -> RenderableType:
    """Completion times at some shares of the jobs, as bars on a logarithmic scale."""
    times = finite(completed(run.jobs)["jct"])
    times = times[times > 0]
    if times.size == 0:
        return Text("no job has completed", style="dim")
    shares = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    values = np.quantile(times, shares)
    low, high = math.log(float(times.min())), math.log(float(times.max()))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(Text("JCT", style="dim"))
    for share, value in zip(shares, values):
        filled = (math.log(float(value)) - low) / (high - low) if high > low else 1.0
        bar = Text(progress_bar(filled, max(10, width - 12)), style="magenta")
        table.add_row(Text(f"{share:.0%} done", style="dim"), bar, Text(human_seconds(float(value))))
    return table


def sparkline(values: np.ndarray, top: float) -> str:
    """A character per value, as high as its share of ``top``; what is not zero shows at least a trace."""
    if top <= 0:
        return BLOCKS[0] * len(values)
    levels = np.clip(np.ceil(values / top * 8 - 1e-9), 0, 8).astype(int)
    return "".join(BLOCKS[level] for level in levels)


def progress_bar(share: float, width: int) -> str:
    """A bar of ``width`` characters, filled to an eighth of a character."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return (EIGHTHS[8] * full + (EIGHTHS[rest] if rest else "")).ljust(width)


def printable(name: str) -> str:
    """The name without control characters of a terminal: a job may have any name."""
    return "".join(sign if sign.isprintable() else "�" for sign in name)


def _longest_queue(run: RunLike) -> float:
    return float(run.series["queued"].max() or 0) if run.series.height else 0.0  # type: ignore[arg-type]


def _curve(run: RunLike, column: str, width: int) -> np.ndarray:
    start, end = span_of(run)
    series: pl.DataFrame = with_utilization(run.series)
    return bin_means(series, [column], start, end, width)[column].to_numpy()
