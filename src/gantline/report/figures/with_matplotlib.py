"""Charts as files: drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterable
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

from gantline.core.errors import UsageError
from gantline.report.figures.chart import Axis, Bars, Box, Chart, Layer, Line, Panel, Points, Raster, spread_apart
from gantline.report.figures.palette import LIGHT, Theme, dash, series_colour

WIDTH, PANEL_HEIGHT = 7.2, 3.0
_LINE_OF_TEXT = 90
"""Signs that fit side by side under a figure; longer labels are turned."""
FORMATS = ("png", "svg", "pdf")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "gantline",
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names of jobs and users are text, dollar signs included
}
_LINE_STYLES = {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (5, 2, 1, 2))}


def draw(chart: Chart, theme: Theme = LIGHT) -> Figure:
    """The chart as a matplotlib figure."""
    with mpl.rc_context(_STYLE):
        count = len(chart.panels)
        ratios = [panel.height for panel in chart.panels]
        size = (WIDTH, PANEL_HEIGHT * max(ratios)) if chart.beside else (WIDTH, PANEL_HEIGHT * sum(ratios) * 0.9 + 0.5)
        figure = Figure(figsize=size, layout="constrained", facecolor=theme.ground)
        grid = figure.subplots(
            1 if chart.beside else count,
            count if chart.beside else 1,
            squeeze=False,
            sharex=False if chart.beside else "all",
            gridspec_kw={} if chart.beside else {"height_ratios": ratios},
        )
        for position, (axes, panel) in enumerate(zip(grid.flat, chart.panels)):
            _draw_panel(axes, panel, theme, bottom=chart.beside or position == count - 1)
        figure.suptitle(chart.title, color=theme.text, fontsize=11.5, x=0.01, ha="left", fontweight="bold")
        if chart.notes:
            figure.supxlabel(fill("  ".join(chart.notes), 130), color=theme.quiet, fontsize=7.5, x=0.01, ha="left")
        return figure


def save(chart: Chart, path: Path, theme: Theme = LIGHT, dpi: int = 160) -> Path:
    """Write the chart as PNG, SVG or PDF, by the ending of the name; equal charts give equal bytes."""
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise UsageError(f"'{path.suffix}' is not a format of figures", where=str(path), fix="use .png, .svg or .pdf")
    held = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with mpl.rc_context(_STYLE):
        draw(chart, theme).savefig(held, format=kind, dpi=dpi, metadata=dates)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(held.getvalue())
    draft.replace(path)
    return path


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
    colour = series_colour(theme, layer.colour)
    if isinstance(layer, Line):
        style = _LINE_STYLES[dash(layer.colour)]
        drawstyle = "steps-post" if layer.step else "default"
        marker = "o" if layer.markers else None
        axes.plot(layer.x, layer.y, color=colour, lw=1.6, ls=style, drawstyle=drawstyle, marker=marker, ms=4, solid_joinstyle="round")
        if layer.low is not None and layer.high is not None:
            axes.fill_between(layer.x, layer.low, layer.high, color=colour, alpha=0.16, linewidth=0)
    elif isinstance(layer, Points):
        tone = theme.quiet if layer.quiet else colour
        axes.plot(layer.x, layer.y, "o", color=tone, ms=6, alpha=0.9, mec=theme.ground, mew=0.7, zorder=3)
        for x, y, text in zip(layer.x, layer.y, layer.texts):
            away, up = layer.toward
            axes.annotate(
                text,
                (x, y),
                (6 * away, 5 * up),
                textcoords="offset points",
                color=tone,
                fontsize=8.5,
                zorder=4,
                ha="left" if away > 0 else "right",
                va="bottom" if up > 0 else "top",
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
        return Line2D([], [], color=colour, marker="o", ls="", label=layer.name)
    return Line2D([], [], color=colour, ls=_LINE_STYLES[dash(layer.colour)], lw=1.8, label=layer.name)


def _legend(axes: Axes, handles: Iterable[Line2D | Patch], above: bool, theme: Theme) -> None:
    shown = list(handles)
    if not shown:
        return
    where = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "ncols": min(len(shown), 5)} if above else {"loc": "lower right"}
    axes.legend(handles=shown, frameon=False, labelcolor=theme.text, fontsize=8.5, handlelength=1.6, borderaxespad=0.2, **where)


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
            fontsize=8.5,
            annotation_clip=False,
        )
