"""The HTML report as text; tests/system opens it in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.lab.report.example_runs import example_run

from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds
from gantline.lab.report import figures
from gantline.lab.report.figures import DARK, LIGHT
from gantline.lab.report.html import SCRIPTS, json_for_html, render_report, stylesheet, write_report
from gantline.lab.report.labels import best_of, spell, speller
from gantline.lab.report.metrics import BY_KEY, METRICS, Measuring, Window, measure
from gantline.lab.report.page.answer import headline
from gantline.lab.report.page.tables import COLUMNS, MOST_ROWS, comparison_table, job_tables, page_order
from gantline.lab.report.terminal import comparison, printable, progress_bar, run_summary, sparkline

HOSTILE = ["</script><script>owned=1</script>", "<img src=x onerror=owned=1>", "<!--", "a & 'b' \"c\"", "\u2028"]
RUNS = [
    example_run(jobs=40, name="fifo", names=HOSTILE, users=["ann", "<i>bob</i>"]),
    example_run(jobs=40, name="<b>short</b>", names=HOSTILE, users=["ann", "<i>bob</i>"], shortest_first=True),
]


class Reader(HTMLParser):
    """Collects the elements, the comparison table and the JSON block of a report."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.table, self.scripts, self.policy, self.styles = [], {}, [], "", []
        self._row, self._script, self._style = None, None, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "tr" and "data-metric" in attributes:
            self._row = self.table.setdefault(attributes["data-metric"], [])
        elif tag == "td" and "data-value" in attributes:
            self._row.append(attributes["data-value"])
        elif tag == "script":
            self._script = [attributes.get("type"), ""]
            self.scripts.append(self._script)
        elif tag == "style":
            self._style = True
        elif attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_data(self, data):
        if self._style:
            self.styles.append(data)
        if self._script is not None:
            self._script[1] += data

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = None
        self._style = False

    @property
    def data(self):
        return json.loads(next(text for kind, text in self.scripts if kind == "application/json"))


@pytest.fixture(scope="module")
def text():
    return render_report(RUNS, title="A <report>")


@pytest.fixture(scope="module")
def read(text):
    return Reader(text)


def test_names_never_become_elements(read):
    assert [tag for tag, _ in read.tags if tag in ("img", "i", "b")] == []
    assert len(read.scripts) == 1 + len(SCRIPTS)
    assert read.data["jobs"]["pool"][0][: len(HOSTILE)] == HOSTILE


def test_the_policy_allows_our_scripts_and_no_address(read):
    ours = [script for kind, script in read.scripts if kind is None]
    for script in ours:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in read.policy
    (style,) = read.styles
    assert f"style-src 'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in read.policy
    assert "default-src 'none'" in read.policy
    assert "unsafe" not in read.policy
    assert not re.search(r"https?:", read.policy)


def test_no_element_has_a_style_or_a_handler_of_its_own(read):
    """A strict content policy would refuse both, in this file and in a page that shows the same figures."""
    for tag, attributes in read.tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag


def test_no_element_points_outside(read):
    for tag, attributes in read.tags:
        assert "src" not in attributes, tag
        assert not attributes.get("href", "#").startswith("http")
    assert [tag for tag, _ in read.tags if tag == "link"] == []


def test_answer_first_then_table_then_figures_then_jobs_then_provenance(text):
    parts = ('class="headline"', 'id="comparison"', "<h2>Figures</h2>", "<h2>Jobs</h2>", "<h2>What was run</h2>")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_answer_comes_first_and_its_doubts_are_one_line_that_unfolds():
    busy = [example_run(jobs=150, gap=60, name="fifo"), example_run(jobs=150, gap=60, name="short", shortest_first=True)]
    text = render_report([replace(run, summary={**run.summary, "jobs": 150}) for run in busy])
    body = text[text.index("<h1>") :]
    first, doubts = body.index('class="headline"'), body.index('<details class="doubts grave">')
    assert first < doubts < body.index('id="comparison"')
    assert len(re.findall("<summary>[^<]*No steady state", body)) == 1
    assert "Every run is in doubt" in body
    assert "doubts" not in render_report(RUNS)[text.index("<h1>") : text.index('id="comparison"')]


def test_eight_rows_matter_and_the_others_are_folded(text):
    first, _, rest = text[text.index('<div id="comparison">') : text.index("<h2>Figures</h2>")].partition("<details>")
    assert first.count("data-metric") == MOST_ROWS
    assert first.index('"jct_mean"') < first.index('"utilization"')
    assert f"<summary>{rest.count('data-metric')} more metrics</summary>" in rest


def test_rows_of_one_kind_have_one_unit():
    found = [measure(run) | {"jct_median": 90.0, "jct_p99": 400_000.0} for run in RUNS]
    rows = dict(re.findall(r'data-metric="(jct_\w+)".*?<td[^>]*>([^<]*)<', comparison_table(["a", "b"], found)))
    assert len({cell.split()[1] for cell in rows.values()}) == 1
    assert len(rows) == 6


def test_a_run_is_told_by_the_same_line_in_the_table_and_in_figures(text, read):
    heads = re.findall(r'<path d="M0 4H28" class="line c(\d)"(?: stroke-dasharray="([^"]*)")?/></svg>([^<]*)<', text)[:2]
    lines = read.data["figures"]["jct"]["legend"]
    assert [(int(colour), dash, name) for colour, dash, name in heads] == [
        (line["colour"], line["dash"], name) for line, name in zip(lines, ("fifo", "&lt;b&gt;short&lt;/b&gt;"))
    ]


def test_every_figure_has_a_place_and_every_place_a_figure(read):
    places = {a["id"].removeprefix("figure-") for tag, a in read.tags if tag == "div" and a.get("class") == "plot"}
    assert places == set(read.data["figures"])
    assert places == {"jct", "timeline", "gantt", "fairness", "progress-0", "progress-1"}


def test_the_style_has_the_colours_of_both_themes():
    style = stylesheet()
    for theme in (LIGHT, DARK):
        assert all(f"--s{number}:{colour}" in style for number, colour in enumerate(theme.series))
        assert f"--ground:{theme.ground};" in style


def test_provenance_is_told_in_full(text):
    assert '<th scope="row">seed</th><td>0</td>' in text
    assert '<th scope="row">policy</th><td>fifo</td>' in text


def test_three_runs_also_show_their_trade_off():
    runs = [example_run(jobs=20, seed=seed, name=f"seed {seed}") for seed in range(3)]
    assert "pareto" in Reader(render_report(runs)).data["figures"]


def test_a_long_list_of_jobs_is_sampled_evenly_with_a_note():
    run = example_run(jobs=100)
    told = job_tables([run.jobs], most=10)
    names = told["pool"][told["runs"][0]["columns"][0]]
    assert len(names) == 10
    assert (names[0], names[-1]) == ("job-0", "job-99")
    assert "10 of 100 jobs" in told["runs"][0]["note"]
    assert job_tables([run.jobs])["runs"][0]["note"] == ""


def test_runs_of_one_trace_share_the_columns_of_their_jobs():
    told = job_tables([run.jobs for run in RUNS])
    first, second = ([told["pool"][at] for at in run["columns"]] for run in told["runs"])
    for column, one, other in zip(COLUMNS, first, second):
        known = RUNS[0].jobs["user"].to_list() if column.name == "user" else None
        if column.name in ("job", "user", "gpus", "arrival", "duration"):
            assert one is other
        if known:
            assert [one["words"][code] for code in one["codes"]] == known
    assert len(told["pool"]) < 2 * len(COLUMNS)


def test_windows_and_prices_come_in_through_the_measure():
    page = Reader(render_report(RUNS, measure_with=Measuring(Window(10, 30), prices={"v100": 2.0})))
    found = page.table
    assert [float(cell) for cell in found["jobs"]] == [20, 20]
    assert "money" in found
    longest = [max(x for x in line["x"] if x is not None) for line in page.data["figures"]["jct"]["panels"][0]["layers"]]
    counted = [Window(10, 30).select(run.jobs)["jct"].max() for run in RUNS]
    assert max(longest) == pytest.approx(max(counted), rel=1e-5)  # the curve ends with the longest of the jobs that count


def test_writing_is_whole_or_not_at_all(tmp_path, text):
    out = write_report(RUNS, tmp_path / "new" / "report.html", title="A <report>")
    assert out.read_text(encoding="utf-8") == text
    assert [entry.name for entry in out.parent.iterdir()] == ["report.html"]
    with pytest.raises(UsageError, match="at least one run"):
        write_report([], tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_json_cannot_leave_its_script_element():
    hidden = json_for_html({"x": "</script><!--&\u2028"})
    assert not set("<>&\u2028") & set(hidden)
    assert json.loads(hidden) == {"x": "</script><!--&\u2028"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("jct_mean", 8280.0, "2.3 h"),
        ("utilization", 0.7351, "73.5 %"),
        ("jobs", 82247, "82,247"),
        ("slowdown_mean", 13.684, "13.68"),
        ("gpu_hours", 1523.4, "1,523 h"),
        ("money", 141.8105, "141.81"),
        ("jct_mean", math.nan, "–"),
    ],
)
def test_numbers_as_people_read_them(key, value, text):
    assert spell(next(metric for metric in METRICS if metric.key == key), value) == text


def test_the_best_is_marked_as_far_as_digits_tell():
    jct, jain, jobs = (next(m for m in METRICS if m.key == key) for key in ("jct_mean", "jain_users", "jobs"))
    assert best_of(jct, [7200.0, 7201.0, 9000.0, math.nan]) == {0, 1}
    assert best_of(jain, [0.5, 0.9]) == {1}
    assert best_of(jain, [0.9999, 0.99991]) == set()
    assert best_of(jobs, [1, 2]) == set()


# What a page says first, which values it ticks, and figures that stay readable with many runs.

FIFO, SHORT = example_run(jobs=50, name="fifo"), example_run(jobs=50, name="short", shortest_first=True)
NUMBERS = [measure(FIFO), measure(SHORT)]


def test_the_headline_is_numbers_about_one_trace() -> None:
    told = headline(["fifo", "short"], NUMBERS, [])
    assert re.fullmatch(
        r"short has the lowest mean JCT of these runs, 40.6 min: 15 % below fifo \(50 jobs\)\. One trace decides nothing about others: .*",
        told,
    )
    assert "interval" not in told
    assert headline(["fifo", "short"], NUMBERS, [0]) == ""
    assert headline(["a", "b"], [NUMBERS[0]] * 2, []).startswith("a and b have the same mean JCT")


def test_the_headline_is_about_the_jobs_that_count() -> None:
    """Among the first jobs the order turns round, and the sentence with it, as the table does."""
    late = [measure(run, window=Window(0, 12)) for run in (SHORT, FIFO)]
    best = min(zip(("short", "fifo"), late), key=lambda one: one[1]["jct_mean"])
    told = headline(["short", "fifo"], late, [])
    assert told.startswith(f"{best[0]} has the lowest") or "the same" in told
    assert "(12 jobs)" in told


def test_a_row_has_one_unit_and_says_what_it_means() -> None:
    write = speller(BY_KEY["jct_mean"], [5400.0, 9000.0, 10800.0])
    assert [write(value) for value in (5400.0, 9000.0, 10800.0)] == ["1.5 h", "2.5 h", "3.0 h"]
    assert 'title="from arrival to completion, mean over jobs"' in comparison_table(["a", "b"], NUMBERS)


def test_many_runs_stand_best_first() -> None:
    slow = [{**NUMBERS[0], "jct_mean": value} for value in (400.0, 100.0, 300.0, 200.0)]
    assert page_order(slow, ()) == [1, 3, 2, 0]
    assert page_order(slow, (1,)) == [3, 2, 0, 1]  # one in doubt never comes first
    assert page_order(slow[:3], ()) == [0, 1, 2]


def test_six_runs_have_panels_of_their_own() -> None:
    assert len(figures.queue_and_utilization([FIFO, SHORT]).panels) == 2
    chart = figures.queue_and_utilization([replace(FIFO, summary={**FIFO.summary, "name": f"run{k}"}) for k in range(6)])
    assert [panel.y.label for panel in chart.panels] == [f"run{k}" for k in range(6)]
    assert len({panel.y.high for panel in chart.panels}) == 1


def test_a_gantt_chart_names_its_nodes() -> None:
    told = replace(FIFO, summary={**FIFO.summary, "node_gpus": [4, 4], "node_names": ["east", "west"]})
    (panel,) = figures.gantt(told).panels
    assert panel.y.ticks == ((2.0, "east"), (6.0, "west"))


# Summaries for a terminal.

CALM_FIFO = example_run(jobs=80, gap=300, name="fifo")
CALM_SHORT = example_run(jobs=80, gap=300, name="short", shortest_first=True)


def shown(renderable, width=100):
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


def test_sparklines_reach_from_nothing_to_full():
    assert sparkline(np.array([0, 1, 4, 8]), 8) == " ▁▄█"
    assert sparkline(np.array([0.001, 8]), 8) == "▁█"  # a little is not nothing
    assert sparkline(np.zeros(3), 0) == "   "


@given(st.floats(-1, 2), st.integers(1, 40))
def test_bars_keep_their_width(share, width):
    assert len(progress_bar(share, width)) == width


def test_bars_fill_in_eighths():
    assert progress_bar(0.5, 4) == "██  "
    assert progress_bar(0.53125, 4) == "██▏ "
    assert progress_bar(1.0, 4) == "████"


def test_a_run_shows_its_numbers_and_its_curves():
    text = shown(run_summary(CALM_FIFO))
    found = measure(CALM_FIFO)
    assert human_seconds(found["jct_mean"]) in text
    assert f"{100 * found['utilization']:.1f} %" in text
    assert f"up to {CALM_FIFO.series['queued'].max()}" in text
    assert "50% done" in text
    assert "█" in text


def test_runs_stand_side_by_side():
    text = shown(comparison([CALM_FIFO, CALM_SHORT]))
    head = text.splitlines()[0].split()
    assert head == ["Metric", "fifo", "short"]
    for run in (CALM_FIFO, CALM_SHORT):
        assert human_seconds(measure(run)["jct_mean"]) in text


def test_names_can_neither_style_nor_steer_the_terminal():
    hostile = example_run(jobs=5, name="[red]x[/red]\x1b[2J\x07")
    text = shown(comparison([hostile, CALM_FIFO]))
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert printable("a\x1bb") == "a�b"
