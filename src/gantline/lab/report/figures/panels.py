"""A figure as values: panels with axes and layers, drawn alike by matplotlib (files) and as SVG (pages).

Figure functions only prepare numbers; what a line looks like on paper or in a browser is defined once per library.
"""

from __future__ import annotations

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
    beside: bool = False


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
