"""The page of a sweep, from its folder: who beats whom, means with intervals, figures over its axes, every run.

A sweep keeps the jobs and the metrics of its runs, not what happened in between unless it is told to. So this page has no timelines of
devices; it says where those are, or how to get them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import polars as pl

from gantline.core.errors import UsageError
from gantline.experiment.charts import charts_of
from gantline.experiment.compare import compare
from gantline.experiment.comparison_files import sentences_of
from gantline.experiment.completion_times import completion_times
from gantline.experiment.folder import slug
from gantline.experiment.means import SHOWN, means_of, spread
from gantline.experiment.outcome import DONE
from gantline.experiment.records import kept_run
from gantline.experiment.remarks import notes_of, warnings_of
from gantline.experiment.sweep_runs import SweepRuns
from gantline.report.figures import Chart
from gantline.report.html import figures_section, page
from gantline.report.metrics import BY_KEY
from gantline.report.metrics.catalogue import MEANINGS
from gantline.report.numbers import speller

_MOST_RUNS = 500  # rows


def render_sweep(sweep: SweepRuns, title: str = "Gantline sweep") -> str:
    """The page as text; the same folder gives the same text."""
    results = sweep.results
    policies = results["policy"].unique(maintain_order=True).to_list()
    charts = {chart.name: chart for chart in [*charts_of(results), *_completion_times(sweep)]}
    seeds = results["seed"].n_unique()
    counted = f"{len(sweep.cases)} runs of {len(policies)} polic{'ies' if len(policies) > 1 else 'y'}"
    sections = [
        *(f'<p class="warning">{escape(f"failed: {case.name}: {message}")}</p>' for case, message in sweep.failures[:_MOST_RUNS]),
        *(f'<p class="warning">{escape(text)}</p>' for text in warnings_of(sweep)),
        *(f'<p class="note">{escape(text)}.</p>' for text in notes_of(sweep)),
        *_verdicts(sweep, policies),
        "<h2>Means</h2>",
        *_means_table(results),
        *(figures_section(charts) if charts else ()),
        "<h2>Runs</h2>",
        f'<p class="note">{escape(_where_runs_are(sweep))}</p>',
        _runs_table(results),
    ]
    return page(title, f"{counted}, {seeds} seed{'s' if seeds > 1 else ''}.", sections, charts)


def _verdicts(sweep: SweepRuns, policies: Sequence[str]) -> list[str]:
    """Who beats the first policy, by how much and how sure, at each place of the other axes."""
    if len(policies) < 2 or not any(record.state == DONE for record in sweep.records):
        return []
    return [f'<p class="headline">{escape(sentence)}</p>' for sentence in sentences_of(compare(sweep))]


def _completion_times(sweep: SweepRuns) -> list[Chart]:
    try:
        return [completion_times(sweep)]
    except UsageError:  # none, or more curves than a figure can hold
        return []


def _means_table(results: pl.DataFrame) -> list[str]:
    """A row per policy and place, with 95 % intervals over seeds where there are runs enough."""
    frame = means_of(results, SHOWN)
    places = frame.columns[: frame.columns.index("runs")]
    heads = [f'<th scope="col" class="name">{escape(name)}</th>' for name in places] + ['<th scope="col">runs</th>']
    columns: list[list[str]] = []
    for key in SHOWN:
        write = speller(BY_KEY[key], frame[key].to_list())
        heads.append(f'<th scope="col" title="{escape(MEANINGS.get(key, ""))}">{escape(BY_KEY[key].title)}</th>')
        bounds = [spread(low, high, write) for low, high in zip(frame[f"{key}_low"], frame[f"{key}_high"])]
        columns.append([write(value) + (f" ({bound})" if bound else "") for value, bound in zip(frame[key], bounds)])
    rows = []
    for at, row in enumerate(frame.iter_rows(named=True)):
        cells = [f'<td class="text">{escape(_plain(row[name]))}</td>' for name in places]
        cells += [f"<td>{escape(text)}</td>" for text in (f"{row['runs']}{row['mark']}", *(column[at] for column in columns))]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    bracketed = any(text.endswith(")") for column in columns for text in column)
    told = "In brackets: 95 % intervals of the means over seeds. " if bracketed else ""
    failed = "Failed runs are left out. " if frame["failed"].sum() else ""
    return [_table("means", heads, rows), f'<p class="note">{told}{failed}Point at a metric for what it means.</p>']


def _runs_table(results: pl.DataFrame) -> str:
    """A row per run, folded away."""
    writers = {key: speller(BY_KEY[key], results[key].to_list()) for key in SHOWN}
    heads = [f'<th scope="col">{escape(name)}</th>' for name in ("run", "state", *(BY_KEY[key].title for key in SHOWN))]
    rows = []
    for row in results.head(_MOST_RUNS).iter_rows(named=True):
        state = row["state"] + (f" (!) {row['doubts']}" if row["doubts"] else "")
        cells = [f'<td class="name">{escape(row["name"])}</td><td class="text">{escape(state)}</td>']
        cells += [f"<td>{escape(writers[key](math.nan if row[key] is None else row[key]))}</td>" for key in SHOWN]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    note = f'<p class="note">The first {_MOST_RUNS} of {results.height}.</p>' if results.height > _MOST_RUNS else ""
    return f"<details><summary>Every run by itself</summary>{_table('runs', heads, rows)}{note}</details>"


def _where_runs_are(sweep: SweepRuns) -> str:
    kept = [case for case in sweep.cases if kept_run(sweep.folder / "runs", case.hash).is_dir()]
    if kept:
        place = sweep.folder / "by-name" / slug(kept[0].name)
        return f"Timelines, devices and tables of jobs are on the pages of single runs: gantline report {place} -o run.html"
    return "Only jobs and metrics of the runs were kept. For timelines, devices and tables of jobs run the same command with --keep-runs."


def _table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    return f'<div class="scroll"><table id="{name}"><thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _plain(value: object) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
