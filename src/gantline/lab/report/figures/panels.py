"""A figure as values: panels with axes and layers, drawn alike by matplotlib (files) and as SVG (pages).

Figure functions only prepare numbers; what a line looks like on paper or in a browser is defined once per library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats


@dataclass(frozen=True)
class Axis:
    """What an axis shows. ``ticks`` are (value, text) pairs for categories and for durations on a log scale."""

    label: str
    unit: str = ""
    log: bool = False
    percent: bool = False
    low: float | None = None
    high: float | None = None
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def title(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True)
class Line:
    """A curve; ``low`` and ``high`` add a band around it, ``step`` holds each value until the next, a ``quiet`` one recedes."""

    name: str
    x: Floats
    y: Floats
    colour: int = 0
    step: bool = False
    markers: bool = False
    low: Floats | None = None
    high: Floats | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Points:
    """Single points; ``texts`` stand beside them in the direction ``toward`` (right and up: 1, 1), ``quiet`` ones recede."""

    name: str
    x: Floats
    y: Floats
    colour: int = 0
    texts: tuple[str, ...] = ()
    toward: tuple[int, int] = (1, 1)
    quiet: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars side by side at the positions ``x``; ``slot`` of ``slots`` is the place within a group."""

    name: str
    x: Floats
    heights: Floats
    colour: int = 0
    slot: int = 0
    slots: int = 1


@dataclass(frozen=True)
class Box:
    """The five-number summary of some values at a position, with the values themselves."""

    name: str
    at: float
    values: Floats
    colour: int = 0


@dataclass(frozen=True, eq=False)
class Raster:
    """A picture stretched over a rectangle of the axes; row 0 is at the bottom, transparent where nothing is."""

    pixels: NDArray[np.uint8]
    left: float
    right: float
    bottom: float
    top: float
    legend: tuple[tuple[str, tuple[int, int, int]], ...] = ()


Layer = Line | Points | Bars | Box | Raster
Legend = Literal["direct", "corner", "above", "none"]


@dataclass(frozen=True)
class Panel:
    """One pair of axes. ``legend`` is where the names of its lines are placed."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    legend: Legend = "none"
    height: float = 1.0


@dataclass(frozen=True, repr=False)
class Drawing:
    """Panels one above the other (sharing the time axis) or side by side, and notes on what was left out."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()
    side_by_side: bool = False


def floats(values: Sequence[float] | NDArray[np.float64]) -> Floats:
    """Values as an array of floats."""
    return np.asarray(values, dtype=np.float64)


def brief(name: str, most: int = 28) -> str:
    """The name, or its head and tail where it is too long to stand in a figure; tables keep it whole."""
    if len(name) <= most:
        return name
    head = (most - 1) * 2 // 3
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, in their order, at least ``gap`` apart and within bounds while there is room."""
    order = np.argsort(np.asarray(wanted, dtype=np.float64), kind="stable")
    placed: list[float] = []
    for index in order:
        here = max(float(wanted[index]), low)
        placed.append(max(here, placed[-1] + gap) if placed else here)
    excess = max(0.0, placed[-1] - high) if placed else 0.0
    ceiling = np.inf
    for i in range(len(placed) - 1, -1, -1):
        # Push back from the top what was pushed beyond it, no further than needed.
        placed[i] = min(placed[i], high, ceiling) if excess else placed[i]
        ceiling = placed[i] - gap
    out = [0.0] * len(placed)
    for rank, index in enumerate(order):
        out[int(index)] = placed[rank]
    return out


# Axes of time in a unit that suits their length.

_NATURAL = (
    (0.001, "1 ms"),
    (0.01, "10 ms"),
    (0.1, "0.1 s"),
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (36000, "10 h"),
    (4 * 86400, "4 d"),
    (40 * 86400, "40 d"),
    (400 * 86400, "400 d"),
)


@dataclass(frozen=True)
class TimeUnit:
    """A unit of time and its length in seconds."""

    name: str
    seconds: float


UNITS = (TimeUnit("s", 1.0), TimeUnit("min", 60.0), TimeUnit("h", 3600.0), TimeUnit("days", 86400.0))


def unit_for(seconds: float) -> TimeUnit:
    """The unit for an axis that reaches this far: seconds to 3 min, minutes to 3 h, hours to 5 days, then days."""
    if not math.isfinite(seconds):
        return UNITS[0]
    limits = (180.0, 3 * 3600.0, 5 * 86400.0)
    return next((unit for unit, limit in zip(UNITS, limits) if seconds <= limit), UNITS[-1])


def log_duration_axis(label: str, values: Floats) -> Axis:
    """A logarithmic axis of seconds with ticks as people say them: 1 min, 10 min, 1 h."""
    positive = values[np.isfinite(values) & (values > 0)]
    if positive.size == 0:
        return Axis(label, unit="s")
    low, high = float(positive.min()), float(positive.max())
    low, high = low / 1.15, high * 1.15
    inside = tuple(tick for tick in _NATURAL if low <= tick[0] <= high)
    if len(inside) < 2:
        return Axis(label, unit="s", log=True, low=low, high=high)
    return Axis(label, log=True, low=low, high=high, ticks=inside)


# Colours that colour-blind readers can distinguish, on white and on black.
#
# The hues follow Okabe and Ito's set, darkened on white and lightened on black until each stands out at three to one. A
# test simulates the common kinds of colour blindness. Dashes and shapes distinguish series as well, for readers who see no colour.


@dataclass(frozen=True)
class Theme:
    """The colours of a page: its ground, its text and one colour per series."""

    ground: str
    surface: str
    text: str
    quiet: str
    grid: str
    series: tuple[str, ...]


LIGHT = Theme(
    ground="#ffffff",
    surface="#f6f7f9",
    text="#1b1f24",
    quiet="#687078",
    grid="#dfe3e8",
    series=("#0072b2", "#d55e00", "#00845f", "#b0508a", "#9a6b00", "#2a9fd6", "#3c3c46", "#7a5cc8"),
)
DARK = Theme(
    ground="#14171a",
    surface="#1d2126",
    text="#e8eaed",
    quiet="#9aa3ad",
    grid="#343a41",
    series=("#4aa8e8", "#ff8240", "#22b98a", "#e58cc4", "#e0a92e", "#9fdcff", "#c9ccd3", "#a992f5"),
)

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")

RASTER = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#7a5cc8",
    "#b3b02c",
    "#8c564b",
    "#5fc9b8",
    "#c44e6c",
    "#7f8c9b",
)
"""Fills of the Gantt picture; neighbours in this list differ in lightness as well as in hue, on either ground."""


def rgb(colour: str) -> tuple[int, int, int]:
    """``#rrggbb`` as three bytes."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def series_colour(theme: Theme, index: int) -> str:
    """The colour of the series with this number; they repeat after eight."""
    return theme.series[index % len(theme.series)]


def dash(index: int) -> str:
    """The dash of the series with this number: two lines never differ by colour alone."""
    return DASHES[index % len(DASHES)]


def mark(index: int) -> str:
    """The shape of the points of the series with this number."""
    return MARKS[index % len(MARKS)]
