"""A report as one HTML file: opens offline, on a phone, on paper, in light and dark.

The file holds everything: style, plotly.js once, the figures and the jobs as JSON. Its content security policy allows no
address but its own and no script but its own two (by their hashes), so a job called ``<script>`` stays a name.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from gantline.core.errors import UsageError
from gantline.report.doubts import UNSTEADY, doubts_of_run, free_stops, no_contest, turned_away, ways_left_out, wholes_for_parts
from gantline.report.figures import DARK, LIGHT, Chart
from gantline.report.figures.palette import faded
from gantline.report.figures.with_plotly import figure
from gantline.report.frames import RunLike, settled
from gantline.report.in_charge import who_decided
from gantline.report.metrics import Measuring, steadiness
from gantline.report.names import names_of
from gantline.report.page.figures import MOST_DRAWN, choose_figures
from gantline.report.page.headline import headline
from gantline.report.page.jobs import COLUMNS, job_columns
from gantline.report.page.tables import comparison_table, facts_table, group_tables

AS_IT_SAYS = Measuring()


def write_report(runs: Sequence[RunLike], out: Path, *, title: str = "Gantline report", measure_with: Measuring = AS_IT_SAYS) -> Path:
    """Write the report of one or several runs to ``out``; ``measure_with`` says which jobs count, and prices."""
    return write_page(render_report(runs, title=title, measure_with=measure_with), out)


def write_page(text: str, out: Path) -> Path:
    """Write a page whole or not at all."""
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
    except OSError as error:  # a full disk does not say which file it is about
        error.filename = str(out)
        raise
    finally:
        draft.unlink(missing_ok=True)
    return out


def render_report(runs: Sequence[RunLike], *, title: str = "Gantline report", measure_with: Measuring = AS_IT_SAYS) -> str:
    """The report as text; the same runs give the same text."""
    if not runs:
        raise UsageError("a report needs at least one run", where="report", fix="name one or more run directories")
    names, runs = names_of(runs), [settled(run) for run in runs]
    measures, doubts = [measure_with(run) for run in runs], [doubts_of_run(run) for run in runs]
    charts = choose_figures(runs, names, measures, measure_with.window)
    sections = [
        *_warnings(names, runs, doubts),
        *_uneven(measures),
        *_headline(names, measures, doubts),
        "<h2>Comparison</h2>" if len(runs) > 1 else "<h2>Numbers</h2>",
        comparison_table(names, measures, [index for index, told in enumerate(doubts) if told]),
        *figures_section(charts),
        *([f'<p class="note">Figures show the first {MOST_DRAWN} of {len(runs)} runs.</p>'] if len(runs) > MOST_DRAWN else []),
        *group_tables(names, runs),
        "<h2>Jobs</h2>",
        _jobs_section(names),
        "<h2>What was run</h2>",
        *(facts_table(name, run.summary, open_it=len(runs) == 1) for name, run in zip(names, runs)),
    ]
    jobs = {
        "columns": [{"title": column.title, "kind": column.kind} for column in COLUMNS],
        "jobs": [job_columns(run.jobs) for run in runs],
    }
    return page(title, _opening(runs), sections, charts, jobs)


def page(title: str, opening: str, sections: Sequence[str], charts: Mapping[str, Chart], more: Mapping[str, Any] | None = None) -> str:
    """A whole page around its sections, with its figures and what else its script reads."""
    data = {"colours": colour_pairs(), "figures": {key: figure(chart, LIGHT) for key, chart in charts.items()}, **(more or {})}
    scripts = [get_plotlyjs(), _resource("script.js")]
    return "\n".join(
        [
            *_head(title, scripts),
            '<body><div class="page">',
            f'<header><h1>{escape(title)}</h1><button id="theme" class="screen" type="button">Light or dark</button></header>',
            f'<p class="quiet">{escape(opening)} Gantline {escape(version("gantline"))}.</p>',
            *sections,
            "</div>",
            f'<script type="application/json" id="data">{json_for_html(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>",
            "",
        ]
    )


def figures_section(charts: Mapping[str, Chart]) -> list[str]:
    """Places for the figures, which the script draws."""
    return [
        "<h2>Figures</h2>",
        '<p class="note screen">Drag over a figure to look closer, double-click to come back.</p>',
        "<noscript><p>The figures and the searchable table of jobs need JavaScript; the numbers above do not.</p></noscript>",
        *(_figure(key, chart) for key, chart in charts.items()),
    ]


def json_for_html(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def colour_pairs() -> list[tuple[str, str]]:
    """Each colour of the light theme with its partner in the dark one, in the opacities that figures use."""
    pairs = [(getattr(LIGHT, name), getattr(DARK, name)) for name in ("ground", "surface", "text", "quiet", "grid")]
    pairs += list(zip(LIGHT.series, DARK.series))
    return pairs + [(faded(light, o), faded(dark, o)) for light, dark in zip(LIGHT.series, DARK.series) for o in (0.16, 0.1)]


def _head(title: str, scripts: Sequence[str]) -> list[str]:
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    return [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>{_resource('style.css')}</style></head>",
    ]


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _resource(name: str) -> str:
    return files("gantline.report.page").joinpath(name).read_text(encoding="utf-8")


def _opening(runs: Sequence[RunLike]) -> str:
    jobs = sum(run.jobs.height for run in runs)
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}, {jobs:,} jobs in all."


def _warnings(names: Sequence[str], runs: Sequence[RunLike], doubts: Sequence[Sequence[str]]) -> list[str]:
    """A paragraph for everything that speaks against taking the numbers at face value."""
    said: dict[str, list[str]] = {}
    for name, run, own in zip(names, runs, doubts):
        guard = steadiness(run)
        for one in [one for one in own if one != UNSTEADY] + ([] if guard.steady else [str(guard)]):
            said.setdefault(one, []).append(name)
    whose = {one: f"<strong>{escape(', '.join(own))}</strong>: " if len(runs) > 1 else "" for one, own in said.items()}
    found = [f'<p class="warning">{whose[one]}{escape(one)}</p>' for one in said]
    remarks = (free_stops, wholes_for_parts, ways_left_out, turned_away, no_contest)
    free = [(name, said(run.summary)) for said in remarks for name, run in zip(names, runs)]
    free += [(name, who_decided(run)) for name, run in zip(names, runs)]
    lines = [f"{name}: {told}" if len(runs) > 1 else told for name, told in free if told]
    return [*found, *(f'<p class="note">{escape(line)}.</p>' for line in lines)]


def _headline(names: Sequence[str], measures: Sequence[Mapping[str, float]], doubts: Sequence[Sequence[str]]) -> list[str]:
    told = headline(names, measures, [index for index, own in enumerate(doubts) if own])
    note = "A tick marks the best value of these runs. Point at a metric for what it means."
    return [f'<p class="headline">{escape(told)}</p>', f'<p class="note">{note}</p>'] if told else []


def _uneven(measures: Sequence[Mapping[str, float]]) -> list[str]:
    if len({found["completed"] for found in measures}) < 2:
        return []
    return ['<p class="warning">The runs completed different numbers of jobs: compare their means with care.</p>']


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
        f'<div class="scroll"><table id="jobs"><thead><tr>{heads}</tr></thead><tbody></tbody></table></div>'
        '<div class="controls"><button type="button" id="back">Back</button><button type="button" id="next">Next</button>'
        '<span class="quiet" id="found" role="status"></span></div><p class="note" id="jobs-note"></p>'
    )
