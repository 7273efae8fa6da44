"""The page of a sweep, from its folder: what beats what, means with intervals, figures over its axes, every run.

A sweep keeps the jobs and the metrics of its runs, not what happened in between unless it is asked to. So this page has no timelines of
devices; it shows where those are, or how to get them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from gantline.core.errors import UsageError
from gantline.lab.experiment.charts import charts_of, completion_times
from gantline.lab.experiment.compare import compare, sentences_of
from gantline.lab.experiment.folder import slug
from gantline.lab.experiment.messages import notes_of, warnings_of
from gantline.lab.experiment.records import DONE, kept_run
from gantline.lab.experiment.results import SHOWN, SweepRuns, best_places, means_of, spread
from gantline.lab.report.figures import Chart
from gantline.lab.report.figures.for_page import sample
from gantline.lab.report.html import figures_section, page
from gantline.lab.report.labels import spellers
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.metrics.catalogue import MEANINGS
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


# The means of a sweep as a grid: a row per policy, the values of an axis under its name, an interval in every cell.

Row = tuple[Any, ...]
Write = Callable[[float], str]


def means_section(results: pl.DataFrame) -> list[str]:
    """The means with 95 % intervals over seeds: a grid over the axis that varies for each metric, or one table of all metrics."""
    frame = means_of(results, SHOWN)
    axes = [axis for axis in frame.columns[1 : frame.columns.index("runs")] if frame[axis].n_unique() > 1]
    write = spellers([BY_KEY[key] for key in SHOWN], {key: frame[key].to_list() for key in SHOWN})
    if axes:
        tables = _grids(frame, axes, write)
    else:
        tables = [_metrics(frame, write)]
    bracketed = any((frame[f"{key}_low"] < frame[f"{key}_high"]).any() for key in SHOWN)
    runs = sorted({int(count) for count in frame["runs"]})
    text = f"Means of {runs[0]} runs each." if len(runs) == 1 else f"Means of {runs[0]} to {runs[-1]} runs."
    text += " In brackets: 95 % intervals of the means over seeds." if bracketed else ""
    text += " Failed runs are left out." if frame["failed"].sum() else ""
    text += " (!) marks means of runs in doubt." if frame["mark"].str.len_chars().sum() else ""
    return [*tables, f'<p class="note">{text} Point at a metric for what it means.</p>']


def _grids(frame: pl.DataFrame, axes: list[str], write: Mapping[str, Write]) -> list[str]:
    """A grid per metric; those after the first are folded away."""
    across = "load" if "load" in axes else axes[0]
    named = ["policy", *(axis for axis in axes if axis != across)]
    rows = list(dict.fromkeys(frame.select(named).iter_rows()))
    values = frame[across].unique(maintain_order=True).to_list()
    cells = {(row, value): means for row, value, means in zip(frame.select(named).iter_rows(), frame[across], frame.iter_rows(named=True))}
    grids = []
    for key in SHOWN:
        heads = "".join(f'<th scope="col" rowspan="2" class="text">{escape(name)}</th>' for name in named)
        top = f'<tr>{heads}<th scope="colgroup" colspan="{len(values)}" class="across">{escape(across)}</th></tr>'
        under = "".join(f'<th scope="col" class="under">{escape(_plain(value))}</th>' for value in values)
        body = "".join(_grid_row(at, row, [cells.get((row, value)) for value in values], key, write[key]) for at, row in enumerate(rows))
        table = f'<table id="grid-{key}"><thead>{top}<tr>{under}</tr></thead><tbody>{body}</tbody></table>'
        grids.append(_title(key) + framed(table))
    more = "".join(grids[1:])
    return [grids[0], f"<details><summary>{len(grids) - 1} more metrics as grids</summary>{more}</details>"]


def _grid_row(at: int, row: Row, found: list[dict[str, Any] | None], key: str, write: Write) -> str:
    names = [f'<th scope="row" class="text">{sample(at)}{escape(_plain(row[0]))}</th>']
    names += [f'<td class="text">{escape(_plain(value))}</td>' for value in row[1:]]
    cells = (f"<td>{escape(_spelt(one, key, write))}</td>" if one else "<td>–</td>" for one in found)
    return f"<tr>{''.join(names)}{''.join(cells)}</tr>"


def _metrics(frame: pl.DataFrame, write: Mapping[str, Write]) -> str:
    """A row per policy, a column per metric."""
    heads = '<th scope="col" class="text">policy</th>'
    heads += "".join(f'<th scope="col" title="{escape(MEANINGS.get(key, ""))}">{escape(BY_KEY[key].title)}</th>' for key in SHOWN)
    rows = []
    for at, row in enumerate(frame.iter_rows(named=True)):
        cells = "".join(f"<td>{escape(_spelt(row, key, write[key]))}</td>" for key in SHOWN)
        rows.append(f'<tr><th scope="row" class="text">{sample(at)}{escape(row["policy"])}</th>{cells}</tr>')
    return framed(f'<table id="means"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>')


def _spelt(row: Mapping[str, Any], key: str, write: Write) -> str:
    """The mean, its interval, and the mark of doubt."""
    bound = spread(row[f"{key}_low"], row[f"{key}_high"], write)
    return f"{write(row[key])}{f' ({bound})' if bound else ''}{row['mark']}"


def _title(key: str) -> str:
    return f'<h3 title="{escape(MEANINGS.get(key, ""))}">{escape(BY_KEY[key].title)}</h3>'


def _plain(value: object) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
