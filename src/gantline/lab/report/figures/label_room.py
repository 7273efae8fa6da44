"""Room for the names of points: each name is moved to the nearest place where it covers neither another name nor a point."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

NAME_OF_A_POINT = "name of a point"
"""What annotations are called (`gid`) that may be moved."""
_POINT = 4.0  # half the width of a mark, in points
_RINGS = (7.0, 13.0, 20.0, 28.0, 38.0, 50.0)  # points
_FAR = 13.0  # from here on a line leads back
_LEADER = "line to the name of a point"
_ROUNDS = 3


def spread_names(figure: Figure) -> bool:
    """Move the names of points apart; whether there was room for all of them once the figure is laid out around them."""
    names = _names(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names so long that no room is left for axes are no room either
        for _ in range(_ROUNDS if names else 0):
            figure.draw_without_rendering()  # only then are sizes known
            if not _spread(names, _POINT * figure.dpi / 72.0):
                return False
            figure.draw_without_rendering()  # the axes make way for names, which moves the points
            if _are_apart(names):
                return True
    return not names


def drop_names(figure: Figure) -> None:
    """Take the names of points away, and the lines that lead to them."""
    for text in [text for axes in figure.axes for text in axes.texts if text.get_gid() in (NAME_OF_A_POINT, _LEADER)]:
        text.remove()


def _names(figure: Figure) -> list[Annotation]:
    return [text for axes in figure.axes for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == NAME_OF_A_POINT]


def _spread(names: Sequence[Annotation], half: float) -> bool:
    """Give each name the nearest place that is free; one without any stays where it is. Whether all have one."""
    for axes in {name.axes for name in names if name.axes is not None}:
        for leader in [text for text in axes.texts if text.get_gid() == _LEADER]:
            leader.remove()
    marks = [_mark(name, half) for name in names]
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
        if math.hypot(x, y) >= _FAR:
            name.axes.annotate(  # type: ignore[union-attr]
                "", name.xy, (0.75 * x, 0.75 * y), textcoords="offset points", gid=_LEADER, in_layout=False,
                arrowprops={"arrowstyle": "-", "color": name.get_color(), "lw": 0.5, "shrinkA": 0.0, "shrinkB": 2.0}, zorder=2.5,
            )  # fmt: skip
    return len(taken) == len(names)


def _are_apart(names: Sequence[Annotation]) -> bool:
    """Whether no name covers another, and all are on the paper."""
    boxes = [name.get_window_extent() for name in names]
    paper = names[0].get_figure().bbox  # type: ignore[union-attr]
    inside = all(box.x0 >= paper.x0 and box.x1 <= paper.x1 and box.y0 >= paper.y0 and box.y1 <= paper.y1 for box in boxes)
    return inside and all(_is_free(box, boxes[:at]) for at, box in enumerate(boxes))


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
