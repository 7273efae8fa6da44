"""Room for the names of points: each name is moved to the nearest place where it covers neither another name nor a point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

NAME_OF_A_POINT = "name of a point"
"""What annotations are called (`gid`) that may be moved."""
_POINT = 4.0  # half the width of a mark, in points
_RINGS = (7.0, 13.0, 20.0, 28.0, 38.0, 50.0)  # points
_FAR = 13.0  # from here on a line leads back


def spread_names(figure: Figure) -> None:
    """Move the names of points apart; a name without room stays in its place."""
    names = [text for axes in figure.axes for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == NAME_OF_A_POINT]
    if not names:
        return
    figure.draw_without_rendering()  # only then are sizes known
    unit = figure.dpi / 72.0
    marks = [_mark(name, _POINT * unit) for name in names]
    taken: list[Bbox] = []
    for name, mark in zip(names, marks):
        others = [*taken, *(each for each in marks if each is not mark)]
        for x, y in _places(*name.get_position()):
            name.set_position((x, y))
            name.set_horizontalalignment("left" if x > 0 else "right" if x < 0 else "center")
            name.set_verticalalignment("bottom" if y > 0 else "top" if y < 0 else "center")
            box = name.get_window_extent()
            if _is_free(box, others) and _is_inside(box, name):
                break
        else:
            continue
        taken.append(box)
        if math.hypot(x, y) >= _FAR and name.arrow_patch is None:
            name.axes.annotate(  # type: ignore[union-attr]
                "", name.xy, (0.75 * x, 0.75 * y), textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": name.get_color(), "lw": 0.5, "shrinkA": 0.0, "shrinkB": 2.0}, zorder=2.5,
            )  # fmt: skip


def _places(x: float, y: float) -> Iterator[tuple[float, float]]:
    """Where it was put, then around the point, further away each time, beginning on the side where it was put."""
    yield x, y
    first = math.atan2(y, x)
    for ring in _RINGS:
        for step in (0, 1, -1, 2, -2, 3, -3, 4):
            angle = first + step * math.pi / 4
            yield round(ring * math.cos(angle), 6), round(ring * math.sin(angle), 6)


def _mark(name: Annotation, half: float) -> Bbox:
    """The room that the mark of a point takes."""
    assert name.axes is not None
    x, y = name.axes.transData.transform(name.xy)
    return Bbox.from_extents(x - half, y - half, x + half, y + half)


def _is_free(box: Bbox, others: Sequence[Bbox]) -> bool:
    return not any(box.overlaps(other) for other in others)


def _is_inside(box: Bbox, name: Annotation) -> bool:
    """Whether it stays between the axes; to the right it may leave them, as long as it stays on the paper."""
    assert name.axes is not None
    around, paper = name.axes.bbox, name.axes.figure.bbox
    return bool(around.x0 <= box.x0 and box.x1 <= paper.x1 and around.y0 <= box.y0 and box.y1 <= around.y1)
