"""Dates and words for times, as logs and people write them, in seconds."""

from __future__ import annotations

import math

import polars as pl

from gantline.core.errors import UsageError
from gantline.core.units import seconds
from gantline.traces.exact import divide

DATE = r"^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d|$)"
"""How a cell begins that is taken for a date."""

_ZONE = r"(?:\d\d:\d\d(?:\.\d+)?\s?)([+-]\d\d:?\d\d)$"
_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")


def seconds_since_1970(cells: pl.Series) -> pl.Series:
    """Dates as numbers, as their own clocks show; null where a cell is no date."""
    plain = cells.str.replace("T", " ").str.replace(r"\s?(?:Z|[+-]\d\d:?\d\d)$", "")
    found = [plain.str.to_datetime(form, strict=False, time_unit="us") for form in _FORMS]
    return divide(pl.select(pl.coalesce(found)).to_series().cast(pl.Int64), 1e6)


def zone_offsets(cells: pl.Series) -> pl.Series:
    """Seconds that the clock of each date is ahead of UTC; zero where it names no zone."""
    zone = cells.str.extract(_ZONE).fill_null("+00:00").str.replace(":", "")
    offset = zone.str.slice(1, 2).cast(pl.Float64) * 3600 + zone.str.slice(3, 2).cast(pl.Float64) * 60
    return pl.select(pl.when(zone.str.starts_with("-")).then(-offset).otherwise(offset)).to_series()


def seconds_of_words(cells: pl.Series) -> pl.Series:
    """Amounts of time such as ``5m``, ``2 h`` or ``01:30:00`` as numbers; null where a cell is none."""
    known = {cell: _of_word(cell) for cell in cells.unique().to_list() if cell is not None}
    return cells.replace_strict(known, default=None, return_dtype=pl.Float64)


def _of_word(cell: str) -> float | None:
    try:
        value = seconds(cell)
    except (UsageError, ValueError):
        return None
    return value if math.isfinite(value) else None
