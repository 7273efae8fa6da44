"""A report as one HTML file: opens offline, on a phone, on paper, in light and dark.

The file holds everything: style, scripts, the figures and the jobs as JSON. Its content security policy allows no address but its own,
and no script and no style but its own (by their hashes), so a job called ``<script>`` stays a name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gantline.core.errors import UsageError
from gantline.lab.report.doubts import doubts_of_run
from gantline.lab.report.figures import Chart
from gantline.lab.report.figures.for_page import figure
from gantline.lab.report.frames import RunLike, settled
from gantline.lab.report.metrics import Measuring
from gantline.lab.report.names import names_of
from gantline.lab.report.page.answer import answer, doubts_about, folded, notes_about, uneven
from gantline.lab.report.page.figures import MOST_DRAWN, choose_figures
from gantline.lab.report.page.jobs import COLUMNS, job_tables
from gantline.lab.report.page.resources import SCRIPTS, content_policy, resource
from gantline.lab.report.page.stylesheet import stylesheet
from gantline.lab.report.page.tables import comparison_table, facts_table, framed, group_tables, page_order

AS_IT_SAYS = Measuring()


def write_report(runs: Sequence[RunLike], out: Path, *, title: str = "Gantline report", measure_with: Measuring = AS_IT_SAYS) -> Path:
    """Write the report of one or several runs to ``out``; ``measure_with`` holds which jobs count, and prices."""
    return write_page(render_report(runs, title=title, measure_with=measure_with), out)


def write_page(text: str, out: Path) -> Path:
    """Write a page whole or not at all."""
    out = Path(out)
    if out.is_dir():
        raise UsageError("is a folder", where=str(out), fix="name an .html file in it")
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
    except OSError as error:  # the error of a full disk names no file
        error.filename = str(out)
        raise
    finally:
        draft.unlink(missing_ok=True)
    return out


def render_report(runs: Sequence[RunLike], *, title: str = "Gantline report", measure_with: Measuring = AS_IT_SAYS) -> str:
    """The report as text; the same runs give the same text."""
    if not runs:
        raise UsageError("a report needs at least one run", where="report", fix="name one or more run directories")
    given, runs = names_of(runs), [settled(run) for run in runs]
    measures, doubts = [measure_with(run) for run in runs], [doubts_of_run(run) for run in runs]
    doubtful = [index for index, own in enumerate(doubts) if own]
    headline = answer(given, measures, doubtful)
    order = page_order(measures, doubtful)
    names, runs = [given[at] for at in order], [runs[at] for at in order]
    measures, doubts = [measures[at] for at in order], [doubts[at] for at in order]
    first, more = choose_figures(runs, names, measures, measure_with.window)
    sections = [
        f'<p class="headline">{escape(headline)}</p>',
        *folded([*uneven(measures), *doubts_about(names, runs, doubts)], notes_about(names, runs)),
        comparison_table(names, measures, [index for index, own in enumerate(doubts) if own]),
        f'<p class="note">{"A tick marks the best value. " if len(runs) > 1 else ""}Point at a metric for what it means.</p>',
        *figures_section(first, more),
        *([f'<p class="note">Figures show the first {MOST_DRAWN} of {len(runs)} runs.</p>'] if len(runs) > MOST_DRAWN else []),
        *group_tables(names, runs),
        "<h2>Jobs</h2>",
        _jobs_section(names),
        "<h2>What was run</h2>",
        *(facts_table(name, run.summary, open_it=len(runs) == 1) for name, run in zip(names, runs)),
    ]
    return page(title, _opening(runs), sections, {**first, **more}, {"jobs": job_tables([run.jobs for run in runs])})


def page(title: str, opening: str, sections: Sequence[str], charts: Mapping[str, Chart], more: Mapping[str, Any] | None = None) -> str:
    """A whole page around its sections, with its figures and what else its scripts read."""
    data = {"figures": {key: figure(chart) for key, chart in charts.items()}, **(more or {})}
    scripts, style = [resource(name) for name in SCRIPTS], stylesheet()
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{content_policy(scripts, style)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style></head>",
            '<body><div class="page">',
            f'<header><h1>{escape(title)}</h1><button id="theme" class="screen" type="button">Light or dark</button></header>',
            *sections,
            f'<p class="quiet">{escape(opening)} Gantline {escape(version("gantline"))}.</p>',
            "</div>",
            f'<script type="application/json" id="data">{json_for_html(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>",
            "",
        ]
    )


def figures_section(charts: Mapping[str, Chart], more: Mapping[str, Chart] | None = None) -> list[str]:
    """Places for the figures, which the script draws; `more` of them folded away."""
    rest = "".join(_figure(key, chart) for key, chart in (more or {}).items())
    return [
        "<h2>Figures</h2>",
        '<p class="note screen">Drag over a figure to look closer, double-click to come back; a name above it takes its curve away.</p>',
        "<noscript><p>The figures and the searchable table of jobs need JavaScript; the numbers above do not.</p></noscript>",
        *(_figure(key, chart) for key, chart in charts.items()),
        *([f"<details><summary>More figures ({len(more or ())})</summary>{rest}</details>"] if rest else []),
    ]


def json_for_html(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _opening(runs: Sequence[RunLike]) -> str:
    jobs = sum(run.jobs.height for run in runs)
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}, {jobs:,} jobs in all."


def _figure(key: str, chart: Chart) -> str:
    caption = escape(" ".join(chart.notes))
    place = f'<div class="plot" id="figure-{key}" role="img" aria-label="{escape(chart.title)}"></div>'
    return f"<figure><h3>{escape(chart.title)}</h3>{place}<figcaption>{caption}</figcaption></figure>"


def _jobs_section(names: Sequence[str]) -> str:
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    heads = "".join(
        f'<th scope="col" data-title="{escape(column.title)}"{" class=text" if column.kind == "text" else ""}>'
        f'<button type="button">{escape(column.title)}</button></th>'
        for column in COLUMNS
    )
    return (
        '<div class="controls"><input type="search" id="find" placeholder="Search job, user, queue, state" aria-label="Search jobs">'
        f'<select id="which" aria-label="Run">{options}</select></div>'
        + framed(f'<table id="jobs"><thead><tr>{heads}</tr></thead><tbody></tbody></table>')
        + '<div class="controls"><button type="button" id="back">Back</button><button type="button" id="next">Next</button>'
        '<span class="quiet" id="found" role="status"></span></div><p class="note" id="jobs-note"></p>'
    )
