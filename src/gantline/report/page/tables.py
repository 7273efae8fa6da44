"""The static tables of a report."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from gantline.report.figures.panels import brief
from gantline.report.frames import RunLike, span_of
from gantline.report.metrics import per_group, per_type, sharing
from gantline.report.metrics.catalogue import MEANINGS, Metric
from gantline.report.numbers import best_of, known_metrics, spell, speller

MOST_GROUPS = 50
MOST_AT_ONCE = 3
LONGEST_FACT = 600
TOLD_ELSEWHERE = frozenset({
    *("completed", "completed_tracked", "average_jct", "median_jct", "p95_jct", "p99_jct", "max_jct", "makespan"),
    *("average_queueing", "average_responsiveness", "utilization", "gpu_hours", "work_lost", "preemptions", "restarts"),
    *("cost", "node_gpus", "node_types", "resizes", "migrations", "time_lost", "cross_node_jobs"),
    *("node_racks", "cross_rack_jobs", "deadline_satisfaction", "in_charge"),
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


def comparison_table(names: Sequence[str], measures: Sequence[Mapping[str, float]], doubtful: Collection[int] = ()) -> str:
    """A row per metric in one unit, a column per run; the full value is in ``data-value``.

    Many runs stand in the order of their mean completion time. The best value is marked where it is in no doubt.
    """
    if len(names) > MOST_AT_ONCE:  # a phone shows the first ones: let them be the best
        means = [found["jct_mean"] if math.isfinite(found["jct_mean"]) else math.inf for found in measures]
        order = sorted(range(len(names)), key=lambda run: (run in doubtful, means[run]))
        names, measures = [names[run] for run in order], [measures[run] for run in order]
        doubtful = [at for at, run in enumerate(order) if run in doubtful]
    heads = "".join(f'<th scope="col" class="name">{escape(name)}</th>' for name in names)
    rows = []
    for metric in known_metrics(measures):
        values = [found[metric.key] for found in measures]
        best, write = best_of(metric, values, doubtful), speller(metric, values)
        cells = "".join(
            f'<td data-value="{_exact(value)}"{" class=best" if index in best else ""}>{escape(write(value))}</td>'
            for index, value in enumerate(values)
        )
        meaning = escape(MEANINGS.get(metric.key, ""))
        rows.append(f'<tr data-metric="{metric.key}"><th scope="row" title="{meaning}">{escape(metric.title)}</th>{cells}</tr>')
    head = f'<thead><tr><th scope="col">Metric</th>{heads}</tr></thead>'
    return f'<div class="scroll"><table id="comparison">{head}<tbody>{"".join(rows)}</tbody></table></div>'


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
    rows = []
    for row in table.head(MOST_GROUPS).iter_rows(named=True):
        cells = "".join(f"<td>{escape(spell(column, _number(row[column.key])))}</td>" for column in columns)
        rows.append(f'<tr><th scope="row" class="name">{escape(row[by] or "(none)")}</th>{cells}</tr>')
    note = f'<p class="note">The {MOST_GROUPS} largest of {table.height}.</p>' if table.height > MOST_GROUPS else ""
    head = f'<thead><tr><th scope="col">{by.capitalize()}</th>{heads}</tr></thead>'
    body = f'<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>{note}'
    return f"<details{' open' if open_it else ''}><summary>{escape(name)}</summary>{body}</details>"


def facts_table(name: str, summary: Mapping[str, Any], open_it: bool) -> str:
    """Everything the summary says about where a run comes from; its results have tables of their own."""
    told = {key: value for key, value in summary.items() if key not in TOLD_ELSEWHERE and value not in ([], {}, ())}
    rows = "".join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>' for key, value in _flatten(told))
    body = f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>'
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
