"""Charts for pages: the same numbers as plain values, which `page/figures.js` draws as SVG in the reader's browser.

The script is a two-hundredth of plotly.js (4.8 MB), and needs no style that a strict content policy would have to allow. Colours are named
by number, so that light and dark need no second drawing.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.panels import LIGHT, Axis, Bars, Box, Layer, Line, Panel, Points, Raster, dash, mark

PANEL_HEIGHT = 270
DASHES = {"solid": "", "dash": "8 4", "dot": "2 3", "dashdot": "8 3 2 3", "longdash": "14 4", "longdashdot": "14 3 2 3"}
"""Pixels drawn and left out in turn, as SVG writes them."""
SHARP_ROWS = 600
_OPACITIES = 16
"""Steps of opacity that a picture keeps: with its dozen colours they fit into a palette, a byte a pixel instead of four."""


def figure(chart: Chart) -> dict[str, Any]:
    """The chart as plain values, ready for JSON."""
    return {"panels": [_panel(panel) for panel in chart.panels], "legend": _legend(chart)}


def sample(number: int) -> str:
    """A piece of the line of the run with this number, to stand beside its name."""
    dashes = f' stroke-dasharray="{DASHES[dash(number)]}"' if DASHES[dash(number)] else ""
    line = f'<path d="M0 4H28" class="line c{number % len(LIGHT.series)}"{dashes}/>'
    return f'<svg class="sample" width="28" height="8" aria-hidden="true">{line}</svg>'


def picture_url(pixels: np.ndarray) -> str:
    """The picture as a PNG inside an address; row 0 of the pixels comes out at the bottom."""
    seen = np.ceil(pixels[..., 3] * (_OPACITIES / 255.0))
    whole = np.where(seen[..., None] > 0, pixels, 0)
    whole[..., 3] = (seen * (255.0 / _OPACITIES)).astype(np.uint8)
    colours, codes = np.unique(np.ascontiguousarray(whole).view(np.uint32)[..., 0], return_inverse=True)
    rows = codes.reshape(whole.shape[:2]).astype(np.uint8)[::-1]
    # Browsers blur what they enlarge, so rows are repeated until only shrinking is left to them.
    rows = np.repeat(rows, max(1, math.ceil(SHARP_ROWS / rows.shape[0])), axis=0)
    return "data:image/png;base64," + base64.b64encode(png_of_palette(rows, colours.view(np.uint8).reshape(-1, 4))).decode("ascii")


def _panel(panel: Panel) -> dict[str, Any]:
    height = int(PANEL_HEIGHT * panel.height)
    return {"x": _axis(panel.x), "y": _axis(panel.y), "height": height, "layers": [_layer(layer) for layer in panel.layers]}


def _legend(chart: Chart) -> list[dict[str, Any]]:
    """What each colour means, once for all panels."""
    found: dict[str, dict[str, Any]] = {}
    for panel in chart.panels:
        for layer in panel.layers if panel.legend != "none" else ():
            if isinstance(layer, Raster):
                found |= {name: {"name": name, "kind": "fill", "shade": "rgb({},{},{})".format(*shade)} for name, shade in layer.legend}
            elif layer.name:
                kind = "line" if isinstance(layer, Line) else "mark" if isinstance(layer, Points) else "fill"
                found.setdefault(layer.name, {"name": layer.name, "kind": kind, **_look(layer)})
    return list(found.values())


def _look(layer: Line | Points | Bars | Box) -> dict[str, Any]:
    """Colour, dash and shape of a series, by its number."""
    quiet = {"quiet": True} if getattr(layer, "quiet", False) else {}
    return {"colour": layer.colour, "dash": DASHES[dash(layer.colour)], "mark": mark(layer.colour), **quiet}


def _layer(layer: Layer) -> dict[str, Any]:
    if isinstance(layer, Raster):
        place = {"left": layer.left, "right": layer.right, "bottom": layer.bottom, "top": layer.top}
        return {"kind": "raster", "href": picture_url(layer.pixels), **place}
    base = {"name": layer.name, **_look(layer)}
    if isinstance(layer, Line):
        band = {"low": numbers(layer.low), "high": numbers(layer.high)} if layer.low is not None and layer.high is not None else {}
        return {"kind": "line", **base, "x": numbers(layer.x), "y": numbers(layer.y), "step": layer.step, "markers": layer.markers, **band}
    if isinstance(layer, Points):
        named = {"texts": list(layer.texts), "toward": list(layer.toward)} if layer.texts else {}
        return {"kind": "points", **base, "x": numbers(layer.x), "y": numbers(layer.y), **named}
    if isinstance(layer, Bars):
        return {"kind": "bars", **base, "x": numbers(layer.x), "y": numbers(layer.heights), "slot": layer.slot, "slots": layer.slots}
    five = numbers(np.quantile(layer.values, [0.0, 0.25, 0.5, 0.75, 1.0])) if layer.values.size else []
    return {"kind": "box", **base, "at": layer.at, "five": five, "values": numbers(layer.values)}


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"title": axis.title}
    found |= {name: True for name in ("log", "percent") if getattr(axis, name)}
    found |= {name: value for name, value in (("low", axis.low), ("high", axis.high)) if value is not None}
    if axis.unit in ("jobs", "number"):
        found["whole"] = True
    if axis.ticks:
        found["ticks"] = [[value, text] for value, text in axis.ticks]
    return found


def numbers(values: Floats) -> list[float | None]:
    """Numbers for JSON with six significant digits: more than a screen shows, and a third of the bytes."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]


# A picture of few colours as a PNG (ISO/IEC 15948), written without an imaging library: a report needs no more than the core install.

_LEVEL = 6  # 9 takes three times as long for a tenth fewer bytes


def png_of_palette(rows: NDArray[np.uint8], shades: NDArray[np.uint8]) -> bytes:
    """Rows of numbers, the topmost first, each the place of its colour in `shades` (red, green, blue, opacity; at most 256)."""
    height, width = rows.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = rows
    parts = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),  # eight bits, a palette
        _chunk(b"PLTE", np.ascontiguousarray(shades[:, :3]).tobytes()),
        _chunk(b"tRNS", np.ascontiguousarray(shades[:, 3]).tobytes()),
        _chunk(b"IDAT", zlib.compress(lines.tobytes(), _LEVEL)),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
