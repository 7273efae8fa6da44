"""Charts as files: drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.report.figures.label_room import NAME_OF_A_POINT, drop_names, spread_names
from gantline.lab.report.figures.panels import (
    LIGHT,
    Axis,
    Bars,
    Box,
    Drawing,
    Layer,
    Line,
    Panel,
    Points,
    Raster,
    Theme,
    dash,
    mark,
    series_colour,
    spread_apart,
)
from gantline.lab.whole_files import write_whole

WIDTH, PANEL_HEIGHT = 7.2, 3.0
DPI = 160
_LINE_OF_TEXT = 90
"""Signs that fit side by side under a figure; longer labels are turned."""
_NO_DATE: dict[str, dict[str, str | None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
FORMATS = tuple(_NO_DATE)
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "gantline",
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names of jobs and users are text, dollar signs included
}
_LINE_STYLES = {
    "solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (5, 2, 1, 2)),
    "longdash": (0, (9, 2)), "longdashdot": (0, (9, 2, 1, 2)),
}  # fmt: skip
_MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "cross": "X"}


@dataclass(frozen=True)
class Look:
    """What a reader may choose: inches (None: as the panels need), points of the text, another title ("": none)."""

    width: float = WIDTH
    height: float | None = None
    font: float = 9.5
    title: str | None = None

    @staticmethod
    def of(size: str | tuple[float, float] | None = None, font: float | None = None, title: str | None = None, preset: str = "") -> Look:
        """From a preset and what is changed about it: ``size`` is ``5x3`` or ``5`` in inches, as text or as numbers."""
        if preset not in PRESETS:
            raise NotFoundError(f"no preset '{preset}'", where="--preset", fix=near(preset, [name for name in PRESETS if name]))
        look = PRESETS[preset]
        if size is not None:
            width, height = _inches(size)
            look = replace(look, width=width, height=height)
        if font is not None:
            if not 3 <= font <= 40:
                raise UsageError(f"{font:g} points cannot be read", where="--font", fix="write 8 to 12")
            look = replace(look, font=font)
        return look if title is None else replace(look, title=title)


#: column: one column of a two-column paper (ACM, USENIX); text: both columns; slide: half of a slide
PRESETS: dict[str, Look] = {"": Look(), "column": Look(3.33, None, 7.0), "text": Look(7.0, None, 8.0), "slide": Look(6.0, 4.0, 13.0)}


def _inches(size: str | tuple[float, float]) -> tuple[float, float | None]:
    try:
        parts = [float(part) for part in (size.split("x") if isinstance(size, str) else size)]
    except ValueError:
        parts = []
    if len(parts) not in (1, 2) or not all(0.5 <= part <= 60 for part in parts):
        raise UsageError(f"'{size}' is not a size in inches", where="--size", fix="write 5x3, or 3.33")
    return parts[0], parts[1] if len(parts) > 1 else None


def draw(chart: Drawing, theme: Theme = LIGHT, look: Look | None = None) -> Figure:
    """The chart as a matplotlib figure."""
    look = look or Look()
    scale = look.font / _STYLE["font.size"]
    if look.title is not None:
        chart = replace(chart, title=look.title)
    with mpl.rc_context(_STYLE | {"font.size": look.font, "lines.scale_dashes": True}):
        count = len(chart.panels)
        ratios = [panel.height for panel in chart.panels]
        part = PANEL_HEIGHT * min(1.0, max(0.62, look.width / WIDTH))  # a narrow figure is lower, but not too low to read
        tall = part * max(ratios) if chart.side_by_side else part * sum(ratios) * 0.9 + 0.5 * scale
        size = (look.width, look.height or tall)
        figure = Figure(figsize=size, layout="constrained", facecolor=theme.ground)
        grid = figure.subplots(
            1 if chart.side_by_side else count,
            count if chart.side_by_side else 1,
            squeeze=False,
            sharex=False if chart.side_by_side else "all",
            gridspec_kw={} if chart.side_by_side else {"height_ratios": ratios},
        )
        for position, (axes, panel) in enumerate(zip(grid.flat, chart.panels)):
            _draw_panel(axes, panel, theme, bottom=chart.side_by_side or position == count - 1)
        if chart.title:
            wrapped = fill(chart.title, max(20, int(look.width * 72 / (0.62 * 11.5 * scale))))
            figure.suptitle(wrapped, color=theme.text, fontsize=11.5 * scale, x=0.01, ha="left", fontweight="bold")
        if chart.notes:
            signs = max(24, int(130 * look.width / WIDTH / scale))
            figure.supxlabel(fill("  ".join(chart.notes), signs), color=theme.quiet, fontsize=7.5 * scale, x=0.01, ha="left")
        if not spread_names(figure):
            _name_above(figure, chart, theme, fixed=look.height is not None)
        return figure


def save(chart: Drawing, path: Path, theme: Theme = LIGHT, look: Look | None = None) -> Path:
    """Write the chart as PNG, SVG or PDF, by the ending of the name; equal charts give equal bytes."""
    return save_each(chart, [path], theme, look)[0]


def save_each(chart: Drawing, paths: Sequence[Path], theme: Theme = LIGHT, look: Look | None = None) -> list[Path]:
    """Write the chart in several formats: it is drawn and laid out once."""
    kinds = {Path(path): _format_of(Path(path)) for path in paths}
    with mpl.rc_context(_STYLE):
        figure = draw(chart, theme, look)
        layout = figure.get_layout_engine()
        assert layout is not None
        layout.execute(figure)
        figure.set_layout_engine(None)  # or matplotlib would draw everything once more for each file, only to lay it out again
        for path, kind in kinds.items():
            write_whole(path, partial(figure.savefig, format=kind, dpi=DPI, metadata=_NO_DATE[kind]))
    return list(kinds)


def _format_of(path: Path) -> str:
    kind = path.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise UsageError(f"'{path.suffix}' is not a format of figures", where=str(path), fix="use .png, .svg or .pdf")
    return kind


def _draw_panel(axes: Axes, panel: Panel, theme: Theme, bottom: bool) -> None:
    axes.set_facecolor(theme.ground)
    axes.grid(True, color=theme.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(theme.grid)
    axes.tick_params(colors=theme.quiet, labelcolor=theme.text, length=3)
    for layer in panel.layers:
        _draw_layer(axes, layer, theme)
    _set_axis(axes, "x", panel.x, theme)
    _set_axis(axes, "y", panel.y, theme)
    if not bottom:
        axes.set_xlabel("")
    _name_lines(axes, panel, theme)


def _draw_layer(axes: Axes, layer: Layer, theme: Theme) -> None:
    if isinstance(layer, Raster):
        box = (layer.left, layer.right, layer.bottom, layer.top)
        axes.imshow(layer.pixels, origin="lower", extent=box, aspect="auto", interpolation="antialiased", zorder=2)
        axes.grid(False)
        return
    colour = theme.quiet if getattr(layer, "quiet", False) else series_colour(theme, layer.colour)
    if isinstance(layer, Line):
        style = _LINE_STYLES[dash(layer.colour)]
        drawstyle = "steps-post" if layer.step else "default"
        marker = _MARKS[mark(layer.colour)] if layer.markers else None
        axes.plot(layer.x, layer.y, color=colour, lw=1.6, ls=style, drawstyle=drawstyle, marker=marker, ms=4, solid_joinstyle="round")
        if layer.low is not None and layer.high is not None:
            axes.fill_between(layer.x, layer.low, layer.high, color=colour, alpha=0.16, linewidth=0)
    elif isinstance(layer, Points):
        axes.plot(layer.x, layer.y, _MARKS[mark(layer.colour)], color=colour, ms=6, alpha=0.9, mec=theme.ground, mew=0.7, zorder=3)
        for x, y, text in zip(layer.x, layer.y, layer.texts):
            away, up = layer.toward
            axes.annotate(
                text,
                (x, y),
                (6 * away, 5 * up),
                textcoords="offset points",
                color=colour,
                fontsize="smaller",
                zorder=4,
                ha="left" if away > 0 else "right",
                va="bottom" if up > 0 else "top",
                gid=NAME_OF_A_POINT,
            )
    elif isinstance(layer, Bars):
        width = 0.8 / layer.slots
        axes.bar(layer.x + (layer.slot - (layer.slots - 1) / 2) * width, layer.heights, width * 0.94, color=colour)
    else:
        _draw_box(axes, layer, colour, theme)


def _draw_box(axes: Axes, box: Box, colour: str, theme: Theme) -> None:
    line = {"color": colour, "linewidth": 1.3}
    axes.boxplot(
        [box.values],
        positions=[box.at],
        widths=0.5,
        whis=(0, 100),
        showfliers=False,
        manage_ticks=False,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops={"color": colour, "linewidth": 2.4},
    )
    # Spread the points evenly instead of at random: the same values give the same picture.
    aside = np.linspace(-0.12, 0.12, box.values.size) if box.values.size > 1 else np.zeros(1)
    axes.plot(box.at + aside, box.values, "o", color=colour, ms=3.5, alpha=0.55, mec=theme.ground, mew=0.4)


def _set_axis(axes: Axes, which: str, axis: Axis, theme: Theme) -> None:
    target = axes.xaxis if which == "x" else axes.yaxis
    if axis.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    if axis.percent:
        target.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    if axis.ticks:
        target.set_ticks([value for value, _ in axis.ticks], [text for _, text in axis.ticks])
        if which == "x" and sum(len(text) + 2 for _, text in axis.ticks) > _LINE_OF_TEXT:
            for label in target.get_ticklabels():
                label.set(rotation=35, ha="right", rotation_mode="anchor")
        target.set_minor_locator(NullLocator())
        target.set_minor_formatter(NullFormatter())
    elif axis.unit in ("jobs", "number"):
        target.set_major_locator(MaxNLocator(integer=True, nbins=6))
    (axes.set_xlim if which == "x" else axes.set_ylim)(axis.low, axis.high)
    (axes.set_xlabel if which == "x" else axes.set_ylabel)(axis.title, color=theme.text)


def _name_lines(axes: Axes, panel: Panel, theme: Theme) -> None:
    named = [layer for layer in panel.layers if not isinstance(layer, (Raster, Box))]
    if panel.legend == "direct":
        _label_ends(axes, [layer for layer in named if isinstance(layer, Line)], theme)
    elif panel.legend in ("corner", "above"):
        handles = [_handle(layer, theme) for layer in named]
        for layer in panel.layers:
            if isinstance(layer, Raster):
                handles += [Patch(color="#{:02x}{:02x}{:02x}".format(*shade), label=name) for name, shade in layer.legend]
        _legend(axes, handles, panel.legend == "above", theme)


def _handle(layer: Line | Points | Bars, theme: Theme) -> Line2D | Patch:
    colour = series_colour(theme, layer.colour)
    if isinstance(layer, Bars):
        return Patch(color=colour, label=layer.name)
    if isinstance(layer, Points):
        return Line2D([], [], color=colour, marker=_MARKS[mark(layer.colour)], ls="", label=layer.name)
    return Line2D([], [], color=colour, ls=_LINE_STYLES[dash(layer.colour)], lw=1.8, label=layer.name)


def _legend(axes: Axes, handles: Iterable[Line2D | Patch], above: bool, theme: Theme) -> None:
    shown = list(handles)
    if not shown:
        return
    where = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "ncols": min(len(shown), 5)} if above else {"loc": "lower right"}
    axes.legend(handles=shown, frameon=False, labelcolor=theme.text, fontsize="smaller", handlelength=2.4, borderaxespad=0.2, **where)


def _name_above(figure: Figure, chart: Drawing, theme: Theme, fixed: bool) -> None:
    """Points whose names have no room beside them are named in a legend above, in as many columns as the paper has room for."""
    for axes, panel in zip(figure.axes, chart.panels):
        named = [layer for layer in panel.layers if isinstance(layer, Points) and layer.texts]
        if not named or any(layer.texts != (layer.name,) for layer in named):
            continue  # names that stand for one point of several
        drop_names(figure)
        handles = [_handle(layer, theme) for layer in named]
        wide = figure.bbox.width
        for columns in (4, 3, 2, 1):
            if (old := axes.get_legend()) is not None:
                old.remove()
            found = axes.legend(
                handles=handles, frameon=False, labelcolor=theme.text, fontsize="smaller", handlelength=1.0, columnspacing=1.0,
                loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns,
            )  # fmt: skip
            found.set_in_layout(False)
            if found.get_window_extent().width <= wide:
                break
        if not fixed:
            figure.set_figheight(figure.get_figheight() + found.get_window_extent().height / figure.dpi)
        found.set_in_layout(True)


def _label_ends(axes: Axes, lines: list[Line], theme: Theme) -> None:
    """Write each line's name at its right end, apart from the others, in its own colour."""
    lines = [line for line in lines if line.x.size]
    low, high = axes.get_ylim()
    places = spread_apart([float(line.y[-1]) for line in lines], 0.055 * (high - low), low, high)
    right = axes.get_xlim()[1]
    for line, place in zip(lines, places):
        axes.annotate(
            line.name,
            xy=(right, place),
            xytext=(5, 0),
            textcoords="offset points",
            color=series_colour(theme, line.colour),
            va="center",
            fontsize="smaller",
            annotation_clip=False,
        )
