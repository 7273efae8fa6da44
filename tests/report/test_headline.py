"""What a page says first, which values it ticks, and figures that stay readable with many runs."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.report.example_runs import example_run

from gantline.report import figures
from gantline.report.metrics import BY_KEY, measure
from gantline.report.numbers import speller
from gantline.report.page.headline import headline, paired_change, separated
from gantline.report.page.tables import comparison_table

FIFO, SHORT = example_run(jobs=50, name="fifo"), example_run(jobs=50, name="short", shortest_first=True)
NUMBERS = [measure(FIFO), measure(SHORT)]


def test_the_headline_names_the_best_run_and_its_interval() -> None:
    change, low, high, jobs = paired_change(SHORT, FIFO, "jct_mean")
    assert low < change < high
    told = headline(["fifo", "short"], [FIFO, SHORT], NUMBERS, [])
    assert re.fullmatch(
        r"short has the lowest mean JCT, 40.6 min: 15 % below fifo \(95 % interval \d+..\d+ % over 50 jobs of this trace\)\.", told
    )
    assert f"{jobs:,} jobs" in told
    assert headline(["fifo", "short"], [FIFO, SHORT], NUMBERS, [0]) == ""


def test_a_run_is_not_told_apart_from_itself() -> None:
    assert paired_change(FIFO, FIFO, "jct_mean")[:3] == (0.0, 0.0, 0.0)
    assert not separated("jct_mean", {0}, [FIFO, FIFO], [NUMBERS[0], NUMBERS[0]])
    assert not separated("makespan", {0}, [FIFO, SHORT], NUMBERS)
    page = comparison_table(["a", "b"], [NUMBERS[0], {**NUMBERS[0], "jct_mean": NUMBERS[0]["jct_mean"] * 0.5}], (), [FIFO, FIFO])
    assert "class=best" not in page


def test_a_row_has_one_unit_and_says_what_it_means() -> None:
    write = speller(BY_KEY["jct_mean"], [5400.0, 9000.0, 10800.0])
    assert [write(value) for value in (5400.0, 9000.0, 10800.0)] == ["1.5 h", "2.5 h", "3.0 h"]
    assert 'title="from arrival to completion, mean over jobs"' in comparison_table(["a", "b"], NUMBERS)


def test_many_runs_stand_best_first() -> None:
    slow = [{**NUMBERS[0], "jct_mean": value} for value in (400.0, 100.0, 300.0, 200.0)]
    heads = re.findall(r'class="name">(\w)<', comparison_table(list("abcd"), slow))
    assert heads == list("bdca")


def test_six_runs_have_panels_of_their_own() -> None:
    assert len(figures.queue_and_utilization([FIFO, SHORT]).panels) == 2
    chart = figures.queue_and_utilization([replace(FIFO, summary={**FIFO.summary, "name": f"run{k}"}) for k in range(6)])
    assert [panel.y.label for panel in chart.panels] == [f"run{k}" for k in range(6)]
    assert len({panel.y.high for panel in chart.panels}) == 1


def test_a_gantt_chart_names_its_nodes() -> None:
    told = replace(FIFO, summary={**FIFO.summary, "node_gpus": [4, 4], "node_names": ["east", "west"]})
    (panel,) = figures.gantt(told).panels
    assert panel.y.ticks == ((2.0, "east"), (6.0, "west"))
