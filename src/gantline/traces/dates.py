"""Dates and words for times, as logs and people write them, in seconds."""

from __future__ import annotations

import math

import polars as pl

from gantline.core.errors import UsageError
from gantline.core.fields import seconds

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


# Division that rounds once.
#
# Dividing a polars column by a number multiplies by its reciprocal, which turns 42800 ms into 42.800000000000004 s
# and can push a whole quotient over the next integer. Imported times must be the ones that the file states.


def divide(values: pl.Series, by: float) -> pl.Series:
    """Each value divided by ``by``, correctly rounded; nulls stay null."""
    return values.cast(pl.Float64) / pl.repeat(by, len(values), dtype=pl.Float64, eager=True)
