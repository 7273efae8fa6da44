"""Division that rounds once.

Dividing a polars column by a number multiplies by its reciprocal, which turns 42800 ms into 42.800000000000004 s and can
push a whole quotient over the next integer. Imported times must be the ones that the file states.
"""

from __future__ import annotations

import polars as pl


def divide(values: pl.Series, by: float) -> pl.Series:
    """Each value divided by ``by``, correctly rounded; nulls stay null."""
    return values.cast(pl.Float64) / pl.repeat(by, len(values), dtype=pl.Float64, eager=True)
