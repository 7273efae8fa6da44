"""Colours that colour-blind readers can distinguish, on white and on black.

The hues follow Okabe and Ito's set, darkened on white and lightened on black until each stands out at three to one. A
test simulates the common kinds of colour blindness. Dashes and shapes distinguish series as well, for readers who see no colour.
"""

from __future__ import annotations

from dataclasses import dataclass


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
THEMES = {"light": LIGHT, "dark": DARK}

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
