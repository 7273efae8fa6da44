"""The one place where drawn columns become a Trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from gantline.core.errors import UsageError
from gantline.traces.drawn import Drawn
from gantline.traces.trace import Trace


def as_trace(columns: Mapping[str, Any], source: str, notes: tuple[str, ...] = ()) -> Trace:
    """A trace of these columns (series, arrays or lists) in order of arrival, with a name for every job that does not name itself."""
    if not len(columns["arrival"]):
        raise UsageError("no job arrives in this time", where=source, fix="give a longer length, or a higher rate")
    if Drawn.knows(columns):
        return Trace(Drawn(_in_order(columns)), source=source, notes=notes)
    frame = pl.DataFrame(dict(columns)).sort("arrival", maintain_order=True)
    if "job" not in frame.columns:
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(6)
        frame = frame.select((pl.lit("j") + numbers).alias("job"), pl.all())
    return Trace(frame, source=source, notes=notes)


def _in_order(columns: Mapping[str, Any]) -> dict[str, Any]:
    order = np.argsort(columns["arrival"], kind="stable")
    found: dict[str, Any] = {} if "job" in columns else {"job": [f"j{number:06d}" for number in range(1, len(order) + 1)]}
    for name, cells in columns.items():
        found[name] = [cells[row] for row in order.tolist()] if isinstance(cells, list) else cells[order]
    return found
