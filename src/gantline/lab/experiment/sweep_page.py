"""The page of a sweep, from its folder: what beats what, means with intervals, figures over its axes, every run.

A sweep keeps the jobs and the metrics of its runs, not what happened in between unless it is asked to. So this page has no timelines of
devices; it shows where those are, or how to get them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import polars as pl

from gantline.core.errors import UsageError
from gantline.lab.experiment.charts import charts_of
from gantline.lab.experiment.compare import compare
from gantline.lab.experiment.comparison_files import sentences_of
from gantline.lab.experiment.completion_times import completion_times
from gantline.lab.experiment.folder import slug
from gantline.lab.experiment.means import SHOWN, best_places
from gantline.lab.experiment.outcome import DONE
from gantline.lab.experiment.records import kept_run
from gantline.lab.experiment.remarks import notes_of, warnings_of
from gantline.lab.experiment.sweep_grid import means_section
from gantline.lab.experiment.sweep_runs import SweepRuns
from gantline.lab.report.figures import Chart
from gantline.lab.report.html import figures_section, page
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.numbers import spellers
from gantline.lab.report.page.answer import folded
from gantline.lab.report.page.tables import framed

_MOST_RUNS = 500  # rows
_MOST_SENTENCES = 2  # comparisons that are an answer; more of them are a list


def render_sweep(sweep: SweepRuns, title: str = "Gantline sweep") -> str:
    """The page as text; the same folder gives the same text."""
    results = sweep.results
    policies = results["policy"].unique(maintain_order=True).to_list()
    charts = {chart.name: chart for chart in [*charts_of(results), *_completion_times(sweep)]}
    seeds = results["seed"].n_unique()
    counted = f"{len(sweep.cases)} runs of {len(policies)} polic{'ies' if len(policies) > 1 else 'y'}"
    failed = [f"failed: {case.name}: {message}" for case, message in sweep.failures[:_MOST_RUNS]]
    answers, comparisons = _verdicts(sweep, policies)
    sections = [
        *(f'<p class="headline">{escape(answer)}</p>' for answer in answers),
        *folded([*failed, *warnings_of(sweep)], [f"{text}." for text in notes_of(sweep)]),
        *comparisons,
        "<h2>Means</h2>",
        *means_section(results),
        *(figures_section(charts) if charts else ()),
        "<h2>Runs</h2>",
        f'<p class="note">{escape(_where_runs_are(sweep))}</p>',
        _runs_table(results),
    ]
    return page(title, f"{counted}, {seeds} seed{'s' if seeds > 1 else ''}.", sections, charts)


def _verdicts(sweep: SweepRuns, policies: Sequence[str]) -> tuple[list[str], list[str]]:
    """What beats the first policy, by how much and how sure; where that takes many sentences, they are folded under which is best where."""
    if len(policies) < 2 or not any(record.state == DONE for record in sweep.records):
        return [], []
    sentences = sentences_of(compare(sweep))
    if len(sentences) <= _MOST_SENTENCES:
        return sentences, []
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    opening = f"<summary>{len(sentences)} comparisons with {escape(policies[0])}, and how sure each is</summary>"
    return [best_places(sweep.results)], [f"<details>{opening}<ul>{listed}</ul></details>"]


def _completion_times(sweep: SweepRuns) -> list[Chart]:
    try:
        return [completion_times(sweep)]
    except UsageError:  # none, or more curves than a figure can hold
        return []


def _runs_table(results: pl.DataFrame) -> str:
    """A row per run, folded away."""
    writers = spellers([BY_KEY[key] for key in SHOWN], {key: results[key].fill_null(math.nan).to_list() for key in SHOWN})
    heads = [f'<th scope="col">{escape(name)}</th>' for name in ("run", "state", *(BY_KEY[key].title for key in SHOWN))]
    rows = []
    for row in results.head(_MOST_RUNS).iter_rows(named=True):
        state = row["state"] + (f" (!) {row['doubts']}" if row["doubts"] else "")
        cells = [f'<td class="name">{escape(row["name"])}</td><td class="text">{escape(state)}</td>']
        cells += [f"<td>{escape(writers[key](math.nan if row[key] is None else row[key]))}</td>" for key in SHOWN]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    note = f'<p class="note">The first {_MOST_RUNS} of {results.height}.</p>' if results.height > _MOST_RUNS else ""
    table = f'<table id="runs"><thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f"<details><summary>Every run by itself</summary>{framed(table)}{note}</details>"


def _where_runs_are(sweep: SweepRuns) -> str:
    kept = [case for case in sweep.cases if kept_run(sweep.folder / "runs", case.hash).is_dir()]
    if kept:
        place = sweep.folder / "by-name" / slug(kept[0].name)
        return f"Timelines, devices and tables of jobs are on the pages of single runs: gantline report {place} -o run.html"
    return "Only jobs and metrics of the runs were kept. For timelines, devices and tables of jobs run the same command with --keep-runs."
