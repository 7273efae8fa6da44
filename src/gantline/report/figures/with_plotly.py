"""Charts for pages: the same numbers as plain plotly.js figures (dictionaries, ready for JSON).

``plotly.graph_objects.Figure(figure)`` turns one into an object for notebooks.
"""

from __future__ import annotations

import base64
import io
import math
from html import escape
from typing import Any

import numpy as np
from PIL import Image

from gantline.core.arrays import Floats
from gantline.report.figures.chart import Chart
from gantline.report.figures.palette import LIGHT, Theme, dash, faded, mark, series_colour
from gantline.report.figures.panels import Axis, Bars, Box, Layer, Line, Panel, Points, Raster

PANEL_HEIGHT = 300
SHARP_ROWS = 600
GAP = 0.09
"""The space between two panels, as a share of the height."""


def figure(chart: Chart, theme: Theme = LIGHT) -> dict[str, Any]:
    """The chart as a plotly.js figure. Text is escaped: plotly reads names as a small HTML."""
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "paper_bgcolor": theme.ground,
        "plot_bgcolor": theme.ground,
        "font": {"color": theme.text, "size": 12.5, "family": "system-ui, sans-serif"},
        "margin": {"l": 62, "r": 14, "t": 12, "b": 48},
        "height": int(PANEL_HEIGHT * sum(panel.height for panel in chart.panels) + 60),
        "hovermode": "closest",
        "showlegend": any(panel.legend != "none" for panel in chart.panels),
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.01, "yanchor": "bottom"},
        "barmode": "group",
        "bargap": 0.2,
        "images": [],
        "annotations": [],
    }
    for number, (panel, domain) in enumerate(zip(chart.panels, _domains(chart)), start=1):
        _add_panel(traces, layout, panel, number, domain, theme, last=number == len(chart.panels))
    return {"data": traces, "layout": layout}


def picture_url(pixels: np.ndarray) -> str:
    """The picture as a PNG inside an address; row 0 of the pixels comes out at the bottom."""
    # Browsers blur what they enlarge, so rows are repeated until only shrinking is left to them.
    pixels = np.repeat(pixels, max(1, math.ceil(SHARP_ROWS / pixels.shape[0])), axis=0)
    held = io.BytesIO()
    Image.fromarray(pixels[::-1]).save(held, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode("ascii")


def _domains(chart: Chart) -> list[tuple[float, float]]:
    """The vertical stretch of each panel, the first one on top."""
    count = len(chart.panels)
    gap = min(GAP, 0.25 / count)
    room = 1.0 - gap * (count - 1)
    heights = [panel.height / sum(p.height for p in chart.panels) * room for panel in chart.panels]
    domains, top = [], 1.0
    for height in heights:
        domains.append((max(0.0, top - height), top))
        top -= height + gap
    return domains


def _add_panel(
    traces: list[dict[str, Any]],
    layout: dict[str, Any],
    panel: Panel,
    number: int,
    domain: tuple[float, float],
    theme: Theme,
    last: bool,
) -> None:
    suffix = "" if number == 1 else str(number)
    x_axis, y_axis = _axis(panel.x, theme), _axis(panel.y, theme)
    x_axis["anchor"], y_axis["anchor"], y_axis["domain"] = f"y{suffix}", f"x{suffix}", list(domain)
    if suffix:
        x_axis["matches"] = "x"
    if not last:
        x_axis["showticklabels"] = False
        x_axis["title"] = {"text": ""}
    layout[f"xaxis{suffix}"], layout[f"yaxis{suffix}"] = x_axis, y_axis
    place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
    named = panel.legend != "none"
    for layer in panel.layers:
        if isinstance(layer, Raster):
            layout["images"].append(_image(layer, suffix))
            traces += [trace | place for trace in _raster_legend(layer)]
        else:
            for trace in _traces(layer, theme):
                shown = named and trace.pop("named", True)
                group = escape(trace.get("name", ""))
                traces.append(trace | place | {"name": group, "legendgroup": group, "showlegend": shown})


def _traces(layer: Layer, theme: Theme) -> list[dict[str, Any]]:
    if isinstance(layer, Line):
        return _line(layer, theme)
    if isinstance(layer, Points):
        return [_points(layer, theme)]
    colour = series_colour(theme, layer.colour) if isinstance(layer, (Bars, Box)) else ""
    if isinstance(layer, Bars):
        bars = {"type": "bar", "x": numbers(layer.x), "y": numbers(layer.heights), "offsetgroup": layer.slot}
        return [bars | {"name": layer.name, "marker": {"color": colour}, "hovertemplate": "%{y:.1%}"}]
    if isinstance(layer, Box):
        spread = {"type": "box", "x": [layer.at] * layer.values.size, "y": numbers(layer.values), "boxpoints": "all"}
        look = {"pointpos": 0, "jitter": 0.4, "marker": {"color": colour, "size": 5, "opacity": 0.6}, "width": 0.5}
        return [spread | look | {"name": layer.name, "line": {"color": colour}, "fillcolor": faded(colour, 0.1)}]
    return []


def _line(line: Line, theme: Theme) -> list[dict[str, Any]]:
    colour = series_colour(theme, line.colour)
    traces = []
    if line.low is not None and line.high is not None:
        around = {
            "type": "scatter",
            "x": numbers(np.concatenate([line.x, line.x[::-1]])),
            "y": numbers(np.concatenate([line.high, line.low[::-1]])),
            "fill": "toself",
            "fillcolor": faded(colour, 0.16),
            "mode": "lines",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "name": line.name,
            "named": False,
        }
        traces.append(around)
    curve = {
        "type": "scatter",
        "x": numbers(line.x),
        "y": numbers(line.y),
        "mode": "lines+markers" if line.markers else "lines",
        "line": {"color": colour, "width": 2, "dash": dash(line.colour), "shape": "hv" if line.step else "linear"},
        "marker": {"color": colour, "size": 7, "symbol": mark(line.colour)},
        "name": line.name,
    }
    return [*traces, curve]


def _points(points: Points, theme: Theme) -> dict[str, Any]:
    colour = theme.quiet if points.quiet else series_colour(theme, points.colour)
    trace: dict[str, Any] = {
        "type": "scatter",
        "x": numbers(points.x),
        "y": numbers(points.y),
        "mode": "markers+text" if points.texts else "markers",
        "marker": {"color": colour, "size": 10, "symbol": mark(points.colour), "line": {"color": theme.ground, "width": 1}},
        "name": points.name,
        "cliponaxis": False,
    }
    if points.texts:
        away, up = points.toward
        trace["text"] = [escape(text) for text in points.texts]
        trace["textposition"] = f"{'top' if up > 0 else 'bottom'} {'right' if away > 0 else 'left'}"
        trace["textfont"] = {"color": colour}
        trace["hoverinfo"] = "x+y+text"
    return trace


def _image(raster: Raster, suffix: str) -> dict[str, Any]:
    return {
        "source": picture_url(raster.pixels),
        "xref": f"x{suffix}",
        "yref": f"y{suffix}",
        "x": raster.left,
        "y": raster.top,
        "sizex": raster.right - raster.left,
        "sizey": raster.top - raster.bottom,
        "sizing": "stretch",
        "layer": "above",
    }


def _raster_legend(raster: Raster) -> list[dict[str, Any]]:
    """Traces without points: they carry the names of the colours and make plotly draw the axes."""
    entries = raster.legend or (("", (0, 0, 0)),)
    return [
        {
            "type": "scatter",
            "x": [None],
            "y": [None],
            "mode": "markers",
            "marker": {"size": 11, "symbol": "square", "color": "rgb({},{},{})".format(*shade)},
            "name": escape(name),
            "showlegend": bool(raster.legend),
            "hoverinfo": "skip",
        }
        for name, shade in entries
    ]


def _axis(axis: Axis, theme: Theme) -> dict[str, Any]:
    found: dict[str, Any] = {
        "title": {"text": escape(axis.title), "standoff": 8},
        "gridcolor": theme.grid,
        "linecolor": theme.grid,
        "zeroline": False,
        "automargin": True,
    }
    if axis.log:
        found["type"] = "log"
    if axis.percent:
        found["tickformat"] = ".0%"
    if axis.ticks:
        found["tickvals"] = [value for value, _ in axis.ticks]
        found["ticktext"] = [escape(text) for _, text in axis.ticks]
    if axis.low is not None and axis.high is not None:
        found["range"] = [math.log10(end) if axis.log else end for end in (axis.low, axis.high)]
    elif axis.low == 0.0:
        found["rangemode"] = "tozero"
    return found


def numbers(values: Floats) -> list[float | None]:
    """Numbers for JSON with six significant digits: more than a screen shows, and a third of the bytes."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]
