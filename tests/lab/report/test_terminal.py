"""Summaries for a terminal."""

import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.lab.report.example_runs import example_run

from gantline.core.fields import human_seconds
from gantline.lab.report.metrics import measure
from gantline.lab.report.terminal import comparison, printable, progress_bar, run_summary, sparkline

FIFO = example_run(jobs=80, gap=300, name="fifo")
SHORT = example_run(jobs=80, gap=300, name="short", shortest_first=True)


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
    text = shown(run_summary(FIFO))
    found = measure(FIFO)
    assert human_seconds(found["jct_mean"]) in text
    assert f"{100 * found['utilization']:.1f} %" in text
    assert f"up to {FIFO.series['queued'].max()}" in text
    assert "50% done" in text
    assert "█" in text


def test_runs_stand_side_by_side():
    text = shown(comparison([FIFO, SHORT]))
    head = text.splitlines()[0].split()
    assert head == ["Metric", "fifo", "short"]
    for run in (FIFO, SHORT):
        assert human_seconds(measure(run)["jct_mean"]) in text


def test_names_can_neither_style_nor_steer_the_terminal():
    hostile = example_run(jobs=5, name="[red]x[/red]\x1b[2J\x07")
    text = shown(comparison([hostile, FIFO]))
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert printable("a\x1bb") == "a�b"
