"""The static tables of a report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
import polars as pl

from gantline.lab.report.figures.for_page import sample
from gantline.lab.report.figures.panels import brief
from gantline.lab.report.frames import RunLike, span_of
from gantline.lab.report.labels import best_of, known_metrics, spellers
from gantline.lab.report.metrics import bounded_slowdown, per_group, per_type
from gantline.lab.report.metrics.catalogue import MEANINGS, Metric
from gantline.lab.report.metrics.fairness import sharing

MOST_GROUPS = 50
MOST_AT_ONCE = 3
LONGEST_FACT = 600
MATTER = (
    *("jct_mean", "jct_p95", "queueing_mean", "makespan", "utilization", "preemptions", "deadline_satisfaction", "money"),
    *("jain_users", "rho_max", "slowdown_mean", "completed", "jobs"),
)
"""The rows that a reader looks for, in their order; the first that are known are shown, the others are folded away."""
MOST_ROWS = 8
SHOWN_ELSEWHERE = frozenset({
    *("completed", "completed_tracked", "average_jct", "median_jct", "p95_jct", "p99_jct", "max_jct", "makespan"),
    *("average_queueing", "average_responsiveness", "utilization", "gpu_hours", "work_lost", "preemptions", "restarts"),
    *("cost", "node_gpus", "node_types", "resizes", "migrations", "time_lost", "cross_node_jobs"),
    *("node_racks", "cross_rack_jobs", "deadline_satisfaction", "in_charge", "typical_fragmentation"),
})  # fmt: skip
"""What the summary says that stands in the tables above, or follows from the cluster."""
GROUP_COLUMNS = (
    Metric("jobs", "Jobs", "count"),
    Metric("completed", "Completed", "count"),
    Metric("gpu_hours", "GPU-hours", "h"),
    Metric("jct_mean", "Mean JCT", "s"),
    Metric("jct_p95", "95th pct. JCT", "s"),
    Metric("queueing_mean", "Mean queueing", "s"),
    Metric("slowdown_mean", "Slowdown", "ratio"),
    Metric("received", "Received", "share"),
    Metric("share", "Machines held", "share"),
    Metric("envy", "Envy", "share"),
)


TYPE_COLUMNS = (
    Metric("gpus", "GPUs", "count"),
    Metric("jobs", "Jobs", "count"),
    Metric("gpu_hours", "GPU-hours", "h"),
    Metric("utilization", "Utilization", "share"),
    Metric("queue_mean", "Mean queue", "ratio"),
    Metric("fragmentation", "Fragmentation", "share"),
)


def page_order(measures: Sequence[Mapping[str, float]], doubtful: Collection[int]) -> list[int]:
    """The order of the runs on the whole page: as they were given, or from four on by mean completion time, those in doubt last."""
    if len(measures) <= MOST_AT_ONCE:
        return list(range(len(measures)))
    means = [found["jct_mean"] if math.isfinite(found["jct_mean"]) else math.inf for found in measures]
    return sorted(range(len(measures)), key=lambda run: (run in doubtful, means[run]))  # a phone shows the first ones: let them be the best


def comparison_table(names: Sequence[str], measures: Sequence[Mapping[str, float]], doubtful: Collection[int] = ()) -> str:
    """A row per metric in one unit, a column per run; the full value is in ``data-value``.

    The rows that matter first, the others folded away. The best value is marked where it is in no doubt.
    """
    known = known_metrics(measures)
    first = sorted((metric for metric in known if metric.key in MATTER), key=lambda metric: MATTER.index(metric.key))[:MOST_ROWS]
    rest = [metric for metric in known if metric not in first]
    write = spellers(known, {metric.key: [found[metric.key] for found in measures] for metric in known})
    heads = "".join(
        f'<th scope="col" class="name">{sample(at) if len(names) > 1 else ""}{escape(name)}</th>' for at, name in enumerate(names)
    )
    head = f'<thead><tr><th scope="col">Metric</th>{heads}</tr></thead>'

    def table(metrics: Sequence[Metric]) -> str:
        rows = "".join(_metric_row(metric, [found[metric.key] for found in measures], write[metric.key], doubtful) for metric in metrics)
        return framed(f"<table>{head}<tbody>{rows}</tbody></table>")

    more = f"<details><summary>{len(rest)} more metrics</summary>{table(rest)}</details>" if rest else ""
    return f'<div id="comparison">{table(first)}{more}</div>'


def _metric_row(metric: Metric, values: Sequence[float], write: Callable[[float], str], doubtful: Collection[int]) -> str:
    best = best_of(metric, values, doubtful)
    cells = "".join(
        f'<td data-value="{_exact(value)}"{" class=best" if index in best else ""}>{escape(write(value))}</td>'
        for index, value in enumerate(values)
    )
    meaning = escape(MEANINGS.get(metric.key, ""))
    return f'<tr data-metric="{metric.key}"><th scope="row" title="{meaning}">{escape(metric.title)}</th>{cells}</tr>'


def framed(table: str) -> str:
    """The table in a frame that scrolls sideways, with a hint where its columns go on beyond the screen."""
    return f'<div class="scroll" tabindex="0" role="group">{table}</div><p class="goes-on">more columns to the right \u2192</p>'


def group_tables(names: Sequence[str], runs: Sequence[RunLike]) -> list[str]:
    """A table per device type, one per user and one per queue for each run that knows several, folded away."""
    parts = []
    kinds = [(name, found) for name, found in zip(names, map(per_type, runs)) if found.height > 1]
    if kinds:
        parts.append("<h2>Device types</h2>")
    parts += [_group_table(name, "type", table, open_it=len(runs) == 1, columns=TYPE_COLUMNS) for name, table in kinds]
    for by, title in (("user", "Users"), ("queue", "Queues")):
        tables = [
            (name, per_group(run.jobs, by, span_of(run)[1]).join(sharing(run, by), on=by, how="left", maintain_order="left"))  # type: ignore[arg-type]
            for name, run in zip(names, runs)
            if run.jobs[by].n_unique() > 1
        ]
        if tables:
            parts.append(f"<h2>{title}</h2>")
        parts += [_group_table(name, by, table, open_it=len(runs) == 1) for name, table in tables]
    return parts


def _group_table(name: str, by: str, table: pl.DataFrame, open_it: bool, columns: Sequence[Metric] = GROUP_COLUMNS) -> str:
    heads = "".join(f'<th scope="col">{escape(column.title)}</th>' for column in columns)
    rows, shown = [], table.head(MOST_GROUPS)
    write = spellers(columns, {column.key: [_number(value) for value in shown[column.key]] for column in columns})
    for row in shown.iter_rows(named=True):
        cells = "".join(f"<td>{escape(write[column.key](_number(row[column.key])))}</td>" for column in columns)
        rows.append(f'<tr><th scope="row" class="name">{escape(row[by] or "(none)")}</th>{cells}</tr>')
    note = f'<p class="note">The {MOST_GROUPS} largest of {table.height}.</p>' if table.height > MOST_GROUPS else ""
    head = f'<thead><tr><th scope="col">{by.capitalize()}</th>{heads}</tr></thead>'
    body = framed(f"<table>{head}<tbody>{''.join(rows)}</tbody></table>") + note
    return f"<details{' open' if open_it else ''}><summary>{escape(name)}</summary>{body}</details>"


def facts_table(name: str, summary: Mapping[str, Any], open_it: bool) -> str:
    """Everything the summary says about where a run comes from; its results have tables of their own."""
    shown = {key: value for key, value in summary.items() if key not in SHOWN_ELSEWHERE and value not in ([], {}, ())}
    rows = "".join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>' for key, value in _flatten(shown))
    body = framed(f'<table class="facts"><tbody>{rows}</tbody></table>')
    return f"<details{' open' if open_it else ''}><summary>{escape(name)}</summary>{body}</details>"


def _flatten(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            found += _flatten(item, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", "–" if item is None else brief(str(item), LONGEST_FACT)))
    return found


def _exact(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else ""


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


# The jobs of runs as columns for the searchable table.

MOST_JOBS = 10_000
_DIGITS = 6  # more than the table shows


@dataclass(frozen=True)
class JobColumn:
    """A column of the table; ``kind`` is how the page writes and sorts it."""

    name: str
    title: str
    kind: Literal["text", "s", "ratio", "count"]


COLUMNS = (
    JobColumn("job", "Job", "text"),
    JobColumn("state", "State", "text"),
    JobColumn("user", "User", "text"),
    JobColumn("queue", "Queue", "text"),
    JobColumn("gpus", "GPUs", "count"),
    JobColumn("arrival", "Arrival", "s"),
    JobColumn("responsiveness", "First wait", "s"),
    JobColumn("jct", "JCT", "s"),
    JobColumn("duration", "Duration", "s"),
    JobColumn("slowdown", "Slowdown", "ratio"),
    JobColumn("preemptions", "Preemptions", "count"),
)


def job_tables(tables: Sequence[pl.DataFrame], most: int = MOST_JOBS) -> dict[str, Any]:
    """The jobs of several runs; columns that runs of one trace have in common are there once."""
    pool: list[Any] = []
    places: dict[str, int] = {}
    runs = []
    for jobs in tables:
        listed, note = _listed(jobs, most)
        own = []
        for column in COLUMNS:
            values = _values(listed[column.name], column)
            key = json.dumps(values)
            if key not in places:
                places[key] = len(pool)
                pool.append(values)
            own.append(places[key])
        runs.append({"columns": own, "note": note})
    return {"columns": [{"title": column.title, "kind": column.kind} for column in COLUMNS], "pool": pool, "runs": runs}


def _listed(jobs: pl.DataFrame, most: int) -> tuple[pl.DataFrame, str]:
    """The jobs in arrival order, and a note when only every n-th of them is listed."""
    ordered = jobs.with_columns(slowdown=bounded_slowdown(jobs)).sort("arrival", maintain_order=True)
    if ordered.height <= most:
        return ordered, ""
    rows = np.linspace(0, ordered.height - 1, most).astype(np.int64)
    return ordered[rows], f"Listed are {most:,} of {ordered.height:,} jobs, evenly over their arrivals; the numbers above count all."


def _values(series: pl.Series, column: JobColumn) -> Any:
    """The values; few words are written as their numbers in a list of words."""
    if column.kind == "text":
        texts = series.cast(pl.String).fill_null("")
        words = texts.unique(maintain_order=True)
        if len(words) > max(1, len(texts) // 4):
            return texts.to_list()
        codes = texts.replace_strict(words, range(len(words)), return_dtype=pl.Int64)
        return {"words": words.to_list(), "codes": codes.to_list()}
    if column.kind == "count":
        return series.to_list()
    known = series.cast(pl.Float64)
    known = pl.select(pl.when(known.is_finite()).then(known.round_sig_figs(_DIGITS))).to_series()
    return known.to_list()
