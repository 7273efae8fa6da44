"""What a page says first, which values it ticks, and figures that stay readable with many runs."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.lab.report.example_runs import example_run

from gantline.lab.report import figures
from gantline.lab.report.labels import speller
from gantline.lab.report.metrics import BY_KEY, Window, measure
from gantline.lab.report.page.answer import headline
from gantline.lab.report.page.tables import comparison_table, page_order

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
