"""The one place where drawn columns become a Trace."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gantline.core.errors import UsageError
from gantline.workload.trace import Trace


def as_trace(columns: Mapping[str, pl.Series], source: str, notes: tuple[str, ...] = ()) -> Trace:
    """A trace of these columns in order of arrival, with a name for every job that does not name itself."""
    frame = pl.DataFrame(dict(columns)).sort("arrival", maintain_order=True)
    if frame.is_empty():
        raise UsageError("no job arrives in this time", where=source, fix="give a longer length, or a higher rate")
    if "job" not in frame.columns:
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(6)
        frame = frame.select((pl.lit("j") + numbers).alias("job"), pl.all())
    return Trace(frame, source=source, notes=notes)
