"""Figures: the numbers they show, and that paper and page show the same ones."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Annotation
from tests.lab.report.example_runs import example_run

from gantline.core.errors import GantlineError, UsageError
from gantline.lab.report import figures
from gantline.lab.report.figures import DARK, LIGHT, gantt, pareto_front
from gantline.lab.report.figures.comparison import not_dominated
from gantline.lab.report.figures.for_page import DASHES, figure
from gantline.lab.report.figures.gantt import draw_intervals
from gantline.lab.report.figures.label_room import NAME_OF_A_POINT
from gantline.lab.report.figures.panels import RASTER, Raster, dash, mark, rgb
from gantline.lab.report.figures.with_matplotlib import PRESETS, Look, draw, save
from gantline.lab.report.frames import StoredRun
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


# Names of points at the width of a column: none covers another.


def test_names_of_points_that_lie_close_together_do_not_overlap() -> None:
    names = ["fifo", "srtf", "srsf", "tiresias", "max-min fairness", "las", "allox", "optimus", "themis"]
    close = [3600.0 * (5 + 0.15 * k) for k in range(len(names))]
    points = pl.DataFrame({"name": names, "jct_mean": close, "utilization": [0.8 + 0.004 * (k % 3) for k in range(len(names))]})
    figure = draw(pareto_front(points, "jct_mean", "utilization"), look=PRESETS["column"])
    (axes,) = figure.axes
    labels = [text for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == NAME_OF_A_POINT]
    assert sorted(label.get_text() for label in labels) == sorted(names)
    boxes = [label.get_window_extent() for label in labels]
    assert not [1 for one, other in combinations(boxes, 2) if one.overlaps(other)]
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_many_long_names_are_readable_at_the_width_of_a_column() -> None:
    """There is no room for them beside their points, so that they are in a legend, each once and none cut off."""
    names = [f"tiresias limits={3600 * k},36000" for k in range(1, 15)]
    points = pl.DataFrame({
        "name": names,
        "jct_mean": [3600.0 * (1 + 0.002 * (k % 5)) for k in range(len(names))],
        "utilization": [0.8 - 0.0001 * (k % 7) for k in range(len(names))],
    })  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw(pareto_front(points, "jct_mean", "utilization"), look=PRESETS["column"])
        figure.draw_without_rendering()
    (axes,) = figure.axes
    assert not [text for text in axes.texts if text.get_text() and text.get_gid() == NAME_OF_A_POINT]
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == names
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert axes.bbox.height > 0.25 * figure.bbox.height
    assert not box.overlaps(axes.bbox)


# Colours: every reader can tell the first series apart.

# Linear RGB as seen without red, green and blue cones (Machado, Oliveira and Fernandes, 2009, full severity).
SEEN = {
    "all cones": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    share = np.array(rgb(colour)) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lab(light):
    xyz = TO_XYZ @ np.clip(light, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    lights = sorted(TO_XYZ[1] @ linear(colour) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eye", SEEN)
def test_series_differ_for_every_eye(theme, eye):
    for (i, one), (k, other) in combinations(enumerate(theme.series), 2):
        if i // 4 != k // 4:  # from the fifth on, dashes and shapes help
            continue
        distance = np.linalg.norm(lab(SEEN[eye] @ linear(one)) - lab(SEEN[eye] @ linear(other)))
        assert distance > 10, f"{one} and {other} look alike with {eye}"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_everything_stands_out_from_the_ground(theme):
    for colour in theme.series:
        assert contrast(colour, theme.ground) >= 3.0 - 0.05, colour
    assert contrast(theme.text, theme.ground) >= 7
    assert contrast(theme.quiet, theme.ground) >= 4.5


def test_no_colour_of_one_theme_means_something_else_in_it():
    for theme in (LIGHT, DARK):
        tones = [theme.ground, theme.surface, theme.text, theme.quiet, theme.grid, *theme.series]
        assert len(set(tones)) == len(tones)


def test_colour_is_never_the_only_cue() -> None:
    """Six series, the most that a figure is readable with, have six dashes and six shapes."""
    assert len({dash(index) for index in range(6)}) == len({mark(index) for index in range(6)}) == 6


# The Gantt picture against painting pixel by pixel.

PALETTE = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], dtype=np.uint8)


def paint(intervals, devices=2, width=4, rows=10):
    """Draw (start, end, devices, colour) tuples from time 0 to 4."""
    starts, ends, held, colours = zip(*intervals)
    return draw_intervals(
        np.array(starts, dtype=float),
        np.array(ends, dtype=float),
        np.concatenate(([0], np.cumsum([len(h) for h in held]))).astype(np.int64),
        np.array([d for h in held for d in h], dtype=np.int64),
        np.array(colours, dtype=np.int64),
        PALETTE,
        begin=0.0,
        end=4.0,
        device_count=devices,
        width=width,
        most_rows=rows,
    )


def test_a_gang_paints_its_devices_for_its_time():
    pixels = paint([(1, 3, [0, 1], 2)])
    assert pixels.shape == (2, 4, 4)
    assert pixels[:, :, 3].tolist() == [[0, 255, 255, 0]] * 2
    assert pixels[0, 1, :3].tolist() == [0, 0, 255]


def test_a_pixel_is_as_opaque_as_it_is_busy_and_shows_the_longest_holder():
    pixels = paint([(0, 0.25, [0], 0), (0.25, 0.75, [0], 1)], devices=1)
    assert pixels[0, 0].tolist() == [0, 255, 0, round(0.75 * 255)]


def test_rows_hold_several_devices_when_there_are_more_devices_than_rows():
    pixels = paint([(0, 4, [0], 0), (0, 4, [3], 1)], devices=4, rows=2)
    assert pixels.shape[0] == 2
    assert pixels[:, 0, 3].tolist() == [128, 128]


def test_what_lies_outside_the_picture_is_cut_off():
    pixels = paint([(-5, 1, [0], 0), (3, 99, [0], 1), (10, 12, [0], 2)], devices=1)
    assert pixels[0, :, 3].tolist() == [255, 0, 0, 255]


interval = st.tuples(st.floats(-1, 5), st.floats(0, 3), st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))


@given(st.lists(interval, min_size=1, max_size=8))
def test_opacity_equals_the_covered_area(drawn):
    intervals = [(start, start + length, devices, i % 3) for i, (start, length, devices) in enumerate(drawn)]
    pixels = paint(intervals, devices=5, width=7, rows=3)
    edges = np.linspace(0, 4, 8)
    rows = np.arange(5) * 3 // 5
    for row in range(3):
        for x in range(7):
            area = sum(
                max(0.0, min(end, edges[x + 1]) - max(start, edges[x])) * sum(rows[d] == row for d in devices)
                for start, end, devices, _ in intervals
            )
            share = min(1.0, area / (4 / 7) / (rows == row).sum())
            assert abs(int(pixels[row, x, 3]) - share * 255) <= 1.0


def picture_of(chart) -> Raster:
    (layer,) = chart.panels[0].layers
    return layer


def test_the_gantt_is_as_busy_as_the_run():
    run = example_run(jobs=40, nodes=4, gap=200)
    picture = picture_of(gantt(run, width=500))
    busy = picture.pixels[:, :, 3].mean() / 255
    span = run.jobs["finish"].max() - run.jobs["arrival"].min()
    assert busy == pytest.approx(run.jobs["gpu_seconds"].sum() / (16 * span), abs=0.005)


def test_users_keep_their_colour_and_the_small_ones_share_grey():
    run = example_run(jobs=60, users=[f"u{i}" for i in range(9)], gap=100)
    legend = picture_of(gantt(run, "user")).legend
    top = run.jobs.group_by("user").agg(pl.col("gpu_seconds").sum()).sort("gpu_seconds", descending=True)["user"]
    assert [name for name, _ in legend] == [*top.to_list()[:6], "3 others"]
    assert legend[0][1] == rgb(RASTER[0])


def test_an_empty_run_gives_an_empty_picture():
    run = example_run(jobs=1)
    empty = StoredRun(run.jobs.clear(), run.allocations.clear(), run.events, run.series)
    assert picture_of(gantt(empty)).pixels[:, :, 3].max() == 0
