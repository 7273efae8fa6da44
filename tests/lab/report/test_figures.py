"""Figures: the numbers they show, and that paper and page show the same ones."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.report.example_runs import example_run

from gantline.core.errors import GantlineError, UsageError
from gantline.lab.report import figures
from gantline.lab.report.figures import DARK, LIGHT
from gantline.lab.report.figures.comparison import not_dominated
from gantline.lab.report.figures.for_page import DASHES, figure
from gantline.lab.report.figures.panels import dash
from gantline.lab.report.figures.with_matplotlib import Look, draw, save
from gantline.lab.report.metrics import measure

FIFO, SHORT = example_run(jobs=50, name="fifo"), example_run(jobs=50, name="short", shortest_first=True)
TOLD = [replace(run, summary={**run.summary, "node_gpus": [4, 4]}) for run in (FIFO, SHORT)]
LOADS = pl.DataFrame({"name": ["a", "a", "b", "b"], "load": [2, 1, 1, 2], "value": [7200.0, 3600.0, 1800.0, 9000.0]}).with_columns(
    low=pl.col("value") * 0.9, high=pl.col("value") * 1.1
)
SEEDS = pl.DataFrame({"name": ["a"] * 4 + ["b"] * 3, "value": [1.0, 2, 3, 4, 7, 8, 9]})
TRADE = pl.DataFrame({"name": ["a", "b", "c"], "jct_mean": [1e4, 2e4, 3e4], "jain_users": [0.7, 0.9, 0.8]})
CHARTS = {
    chart.name: chart
    for chart in (
        figures.jct_cdf([FIFO, SHORT]),
        figures.jct_against_load(LOADS),
        figures.queue_and_utilization([FIFO, SHORT]),
        figures.fragmentation_over_time(TOLD),
        figures.gantt(FIFO, "user"),
        figures.fairness_per_user([FIFO, SHORT]),
        figures.progress_per_user(FIFO),
        figures.boxes_over_seeds(SEEDS),
        figures.pareto_front(TRADE),
        figures.size_shares(FIFO.jobs["gpus"], FIFO.jobs["duration"]),
        figures.duration_cdf(FIFO.jobs["duration"]),
        figures.hours_of_day(FIFO.jobs["arrival"]),
    )
}


def layers(name):
    return CHARTS[name].panels[0].layers


def test_the_cdf_passes_through_the_medians():
    for line, run in zip(sorted(layers("jct-cdf"), key=lambda line: line.colour), (FIFO, SHORT)):
        assert line.y[-1] == pytest.approx(1.0)
        half = line.x[np.searchsorted(line.y, 0.5)]
        assert half == np.quantile(run.jobs["jct"], 0.5, method="inverted_cdf")


def test_a_long_cdf_is_thinned_with_a_note_and_keeps_its_ends():
    run = example_run(jobs=2000, nodes=30, gap=60)
    chart = figures.jct_cdf([run])
    (line,) = chart.panels[0].layers
    assert line.x.size <= 600
    assert (line.x[0], line.x[-1]) == (run.jobs["jct"].min(), run.jobs["jct"].max())
    assert "at most 600 quantiles of 2,000 jobs" in chart.notes[0]


def test_the_timeline_keeps_the_means():
    queue = CHARTS["timeline"].panels[0].layers[0]
    waited = (FIFO.jobs["first_start"] - FIFO.jobs["arrival"]).sum()
    longest = FIFO.jobs["finish"].max() - FIFO.jobs["arrival"].min()
    assert queue.y.sum() * (queue.x[1] - queue.x[0]) * 3600 == pytest.approx(waited, rel=0.02)
    assert queue.x[-1] * 3600 < longest


def test_fairness_has_a_row_per_user_and_a_point_per_run():
    points = layers("fairness")
    assert [p.name for p in points] == ["fifo", "short"]
    assert len(CHARTS["fairness"].panels[0].y.ticks) == 3
    assert all(0 < share <= 1 for p in points for share in p.x)


def test_fragmentation_over_time_averages_to_the_metric():
    for line, run in zip(layers("fragmentation"), TOLD):
        assert 0.0 <= line.y.min() <= measure(run)["fragmentation"] <= line.y.max() <= 1.0
    whole = figures.fragmentation_over_time(TOLD[:1], slices=1).panels[0].layers[0]
    assert whole.y.tolist() == [pytest.approx(measure(TOLD[0])["fragmentation"])]
    with pytest.raises(UsageError, match="does not record the GPUs of its nodes"):
        figures.fragmentation_over_time([FIFO])


def test_the_front_joins_the_runs_that_no_other_run_beats():
    front, *points = layers("pareto")
    assert [point.texts for point in points] == [("a",), ("b",), ("c",)]
    assert front.x.tolist() == [points[0].x[0], points[1].x[0]]
    assert points[0].toward == points[1].toward != points[2].toward  # names stand on the side that is free


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_front_agrees_with_its_definition(points):
    xs, ys = np.array(points, dtype=float).T
    found = not_dominated(xs, ys, high_x=False, high_y=True)
    for i, (x, y) in enumerate(points):
        beaten = any(a <= x and b >= y and (a, b) != (x, y) for a, b in points)
        assert found[i] == (not beaten)


def test_long_names_are_shortened_in_figures_only():
    name = "a-very-long-name-of-a-user-in-some-department"
    run = example_run(jobs=20, users=[name, "bob"])
    ticks = dict(figures.fairness_per_user([run]).panels[0].y.ticks).values()
    assert "a-very-long-name-o…epartment" in ticks
    assert max(map(len, ticks)) == 28


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_drawn_on_paper_and_on_a_page(name, theme):
    chart = CHARTS[name]
    drawn = draw(chart, theme)
    spec = json.loads(json.dumps(figure(chart), allow_nan=False))
    assert len(drawn.axes) == len(spec["panels"]) == len(chart.panels)
    titles = [axes.get_ylabel() for axes in drawn.axes]
    assert titles == [panel.y.title for panel in chart.panels] == [panel["y"]["title"] for panel in spec["panels"]]
    assert [len(panel["layers"]) for panel in spec["panels"]] == [len(panel.layers) for panel in chart.panels]


def test_paper_and_page_show_the_same_numbers():
    chart = CHARTS["jct-cdf"]
    on_paper = draw(chart).axes[0].lines
    on_page = figure(chart)["panels"][0]["layers"]
    for line, trace in zip(on_paper, on_page):
        assert np.allclose(line.get_xdata(), trace["x"], rtol=1e-5)
        assert np.allclose(line.get_ydata(), trace["y"], rtol=1e-5)


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"'\.gif' is not a format of figures"):
        save(CHARTS["pareto"], tmp_path / "x.gif")


def test_names_are_text_on_paper_and_on_a_page(tmp_path):
    hostile = "<b>$x^{$</b>"
    run = example_run(jobs=20, users=[hostile, "bob"], name=hostile)
    chart = figures.fairness_per_user([run, FIFO])
    assert hostile.replace("<", "&lt;").replace(">", "&gt;") in str(save(chart, tmp_path / "f.svg").read_text())
    spec = figure(chart)
    assert hostile in [text for _, text in spec["panels"][0]["y"]["ticks"]]  # the script makes text nodes of names
    assert hostile in [entry["name"] for entry in spec["legend"]]


def test_a_figure_fits_a_column_of_a_paper() -> None:
    chart = figures.jct_against_load(LOADS.with_columns(runs=pl.Series([5, 7, 7, 7])))
    assert chart.notes == ("Points: means of 5 to 7 runs; bands: 95 % intervals of the mean over seeds.",)
    drawn = draw(chart, look=Look.of(preset="column", title=""))
    assert drawn.get_size_inches()[0] == pytest.approx(3.33)
    assert drawn.get_suptitle() == ""
    assert Look.of("5x3", 12, "Mine") == Look(5.0, 3.0, 12.0, "Mine")
    for wrong in ({"size": "wide"}, {"font": 1.0}, {"preset": "colum"}):
        with pytest.raises(GantlineError):
            Look.of(**wrong)  # type: ignore[arg-type]


def test_a_run_has_one_colour_and_one_dash_in_all_figures():
    runs = [replace(TOLD[0], summary={**TOLD[0].summary, "name": f"run {number}"}) for number in range(6)]
    rows = [{"name": f"run {number}", "jct_mean": 1000.0 * number, "jain_users": 0.1 * number} for number in range(6)]
    made = (figures.jct_cdf, figures.queue_and_utilization, figures.fragmentation_over_time, figures.fairness_per_user)
    for chart in [*(make(runs) for make in made), figures.pareto_front(pl.DataFrame(rows))]:
        looks = {}
        for layer in (layer for panel in figure(chart)["panels"] for layer in panel["layers"] if layer["name"].startswith("run")):
            looks.setdefault(layer["name"], set()).add((layer["colour"], layer["dash"]))
        assert looks == {f"run {number}": {(number, DASHES[dash(number)])} for number in range(6)}, chart.name


def test_stacked_pictures_of_devices_share_time_and_users():
    cut = example_run(jobs=50, name="cut", until=9000.0)
    chart = figures.gantts([FIFO, cut], "user")
    first, second = chart.panels
    assert first.x == second.x
    assert [panel.y.label for panel in chart.panels] == ["fifo", "cut"]
    whole, part = (panel.layers[0] for panel in chart.panels)
    assert part.right < whole.right == pytest.approx(first.x.high)
    assert len(figure(chart)["legend"]) == 3  # each user once
