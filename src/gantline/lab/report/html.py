"""A report as one HTML file: opens offline, on a phone, on paper, in light and dark.

The file holds everything: style, scripts, the figures and the jobs as JSON. Its content security policy allows no address but its own,
and no script and no style but its own (by their hashes), so a job called ``<script>`` stays a name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from gantline.core.errors import UsageError
from gantline.lab.report.figures import (
    Chart,
    fairness_per_user,
    fragmentation_over_time,
    gantts,
    jct_cdf,
    pareto_front,
    progress_per_user,
    queue_and_utilization,
)
from gantline.lab.report.figures.for_page import figure
from gantline.lab.report.figures.over_time import users_by_time
from gantline.lab.report.figures.panels import DARK, LIGHT, Theme
from gantline.lab.report.frames import RunLike, settled
from gantline.lab.report.labels import names_of
from gantline.lab.report.metrics import Measuring, Window
from gantline.lab.report.page.answer import answer, doubts_about, folded, notes_about, uneven
from gantline.lab.report.page.tables import COLUMNS, comparison_table, facts_table, framed, group_tables, job_tables, page_order
from gantline.lab.report.run_warnings import doubts_of_run
from gantline.lab.whole_files import write_text

AS_IT_SAYS = Measuring()


def write_report(runs: Sequence[RunLike], out: Path, *, title: str = "Gantline report", measure_with: Measuring = AS_IT_SAYS) -> Path:
    """Write the report of one or several runs to ``out``; ``measure_with`` holds which jobs count, and prices."""
    return write_page(render_report(runs, title=title, measure_with=measure_with), out)


def write_page(text: str, out: Path) -> Path:
    """Write a page whole or not at all."""
    out = Path(out)
    if out.is_dir():
        raise UsageError("is a folder", where=str(out), fix="name an .html file in it")
    return write_text(out, text)


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


# Which figures a report shows.

MOST_DRAWN = 8
MOST_GANTTS = 4
MOST_PROGRESS = 4


def choose_figures(
    runs: Sequence[RunLike], names: Sequence[str], measures: Sequence[Mapping[str, float]], window: Window | None = None
) -> tuple[dict[str, Chart], dict[str, Chart]]:
    """The figures of a report by a key each, and more of them: the trade-off only from three runs on, fairness only with several users."""
    drawn = runs[:MOST_DRAWN]
    first = {"jct": jct_cdf(drawn, window), "timeline": queue_and_utilization(drawn)}
    if len(runs) > 2:
        first["pareto"] = _trade_off(names, measures)
    users = users_by_time(runs)
    pictures = gantts(runs[:MOST_GANTTS], "user" if len(users) > 1 else "job")
    if len(runs) > MOST_GANTTS:
        note = f"Pictures of devices are drawn for the first {MOST_GANTTS} of {len(runs)} runs."
        pictures = replace(pictures, notes=(*pictures.notes, note))
    first["gantt"] = pictures
    more: dict[str, Chart] = {}
    if any(found["fragmentation"] > 0 for found in measures):
        more["fragmentation"] = fragmentation_over_time(drawn)
    if len(users) > 1:
        more["fairness"] = fairness_per_user(drawn)
        for number, (name, run) in enumerate(zip(names[:MOST_PROGRESS], runs)):
            picture = progress_per_user(run, users=users)
            more[f"progress-{number}"] = replace(picture, title=f"{picture.title}: {name}") if len(runs) > 1 else picture
    return first, more


def _trade_off(names: Sequence[str], measures: Sequence[Mapping[str, float]]) -> Chart:
    """Mean completion time against fairness, or against the makespan where there are no users to be fair to."""
    fair = all(math.isfinite(found["jain_users"]) for found in measures)
    frame = pl.DataFrame([{"name": name, **found} for name, found in zip(names, measures)])
    return pareto_front(frame, "jct_mean", "jain_users" if fair else "makespan")


# Files that are embedded in a page.

SCRIPTS = ("figures.js", "figure_reader.js", "wide_tables.js", "jobs_table.js", "script.js")
"""In the order in which a page needs them."""


def resource(name: str) -> str:
    """A file of this folder."""
    return files("gantline.lab.report.page").joinpath(name).read_text(encoding="utf-8")


def content_policy(scripts: list[str], style: str) -> str:
    """What a page may load: nothing from anywhere, of scripts and styles its own alone, by their hashes."""
    allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src '{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


# The style of a page: the colours of both themes as variables, then the rules.

_MORE = {"light": "--accent:#0072b2;--warn:#fff3d6;--warn-edge:#b87f00", "dark": "--accent:#4aa8e8;--warn:#33290f;--warn-edge:#e0a92e"}
_PAPER = ":root, :root[data-theme] { color-scheme: light; --ground:#ffffff;--surface:#f2f3f5;--text:#000000;--quiet:#444444;--grid:#bbbbbb;"


def stylesheet() -> str:
    """All of it; the screen chooses a theme, the reader may choose the other one, and paper is always light."""
    light, dark = _variables(LIGHT, "light"), _variables(DARK, "dark")
    series = "".join(f".c{number} {{ --c: var(--s{number}); }}\n" for number in range(len(LIGHT.series)))
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {light} }}",
            f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}',
            f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}',
            ':root[data-theme="light"] { color-scheme: light; }',
            f"@media print {{ {_PAPER}{_series(LIGHT)} }} }}",
            series + resource("style.css"),
        ]
    )


def _variables(theme: Theme, name: str) -> str:
    ground = ";".join(f"--{part}:{getattr(theme, part)}" for part in ("ground", "surface", "text", "quiet", "grid"))
    return f"{ground};{_MORE[name]};{_series(theme)}"


def _series(theme: Theme) -> str:
    return ";".join(f"--s{number}:{colour}" for number, colour in enumerate(theme.series))
