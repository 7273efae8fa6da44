"""Names of points at the width of a column: none covers another."""

from __future__ import annotations

from itertools import combinations

import polars as pl
from matplotlib.text import Annotation

from gantline.report.figures import pareto_front
from gantline.report.figures.label_room import NAME_OF_A_POINT
from gantline.report.figures.with_matplotlib import PRESETS, draw


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
