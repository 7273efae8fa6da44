"""Names of points at the width of a column: none covers another."""

from __future__ import annotations

import warnings
from itertools import combinations

import polars as pl
from matplotlib.text import Annotation

from gantline.lab.report.figures import pareto_front
from gantline.lab.report.figures.label_room import NAME_OF_A_POINT
from gantline.lab.report.figures.with_matplotlib import PRESETS, draw


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
