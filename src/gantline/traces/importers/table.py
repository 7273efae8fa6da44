"""Reading the tables of foreign formats: named columns, numbers and dates, with the line of each bad cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gantline.core.errors import TraceError, near
from gantline.traces.dates import seconds_since_1970, zone_offsets
from gantline.traces.read import RawTable, read_csv
from gantline.traces.unpack import refuse_other_encodings, unpack

MISSING = ("", "none", "null", "nan", "na", "n/a", "unknown", "-")


def read_foreign(
    src: Path,
    needed: Sequence[str],
    *,
    separator: str = ",",
    columns: Sequence[str] | None = None,
    quote: bool = True,
) -> RawTable:
    """A separated file; ``needed`` columns must be named in its header (or in ``columns``, for a file without one)."""
    data, source = unpack(src), str(src)
    if not data.strip():
        raise TraceError("is empty", file=source, fix="was the download complete?")
    refuse_other_encodings(data, source)
    raw = read_csv(data.removeprefix(b"\xef\xbb\xbf"), source, separator=separator, columns=columns, quote=quote)
    for name in needed:
        if name not in raw.frame.columns:
            raise raw.error(f"column '{name}' is missing", field=name, fix=near(name, raw.frame.columns))
    if raw.frame.is_empty():
        raise raw.error("holds no rows", fix="was the download complete?")
    return raw


def text(raw: RawTable, name: str) -> pl.Series:
    """A column of text; an absent column and missing values are empty."""
    if name not in raw.frame.columns:
        return pl.Series(name, [""] * len(raw.frame), dtype=pl.String)
    return present(raw.frame[name]).fill_null("")


def number(raw: RawTable, name: str, *, required: bool = False) -> pl.Series:
    """A column of numbers; missing values are null (or refused), anything else that is no number is refused."""
    values = raw.frame[name].cast(pl.String).cast(pl.Float64, strict=False)
    if not values.null_count() and values.is_finite().all():
        return values  # no cell has spaces or a word for nothing
    cells = present(raw.frame[name])
    values = cells.cast(pl.Float64, strict=False)
    bad = cells.is_not_null() & (values.is_null() | values.is_infinite())
    if bad.any():
        row = int(bad.arg_true()[0])
        raise raw.error(f"{cells[row][:60]!r} is not a number", row=row, field=name, fix=_fix(raw))
    if required and cells.null_count():
        row = int(cells.is_null().arg_true()[0])
        raise raw.error("is empty", row=row, field=name, fix="was the file cut short?")
    return values.rename(name)


def moment(raw: RawTable, name: str) -> pl.Series:
    """A column of dates such as ``2020-04-01 00:00:03`` as seconds since 1970; missing values are null."""
    cells = present(raw.frame[name])
    seconds = seconds_since_1970(cells)
    bad = cells.is_not_null() & seconds.is_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise raw.error(f"{cells[row][:60]!r} is not a date", row=row, field=name, fix="such as 2020-04-01 00:00:03")
    return seconds.rename(name)


def zoned_moment(raw: RawTable, name: str) -> pl.Series:
    """As :func:`moment`, for logs whose dates carry their zone: where zones differ, all are counted in the first one."""
    local = moment(raw, name)
    ahead = zone_offsets(present(raw.frame[name]))
    return (local - ahead + float(ahead[0])).rename(name) if ahead.n_unique() > 1 else local


def date_of(seconds: float) -> str:
    """The date that :func:`moment` turned into a number, for a note."""
    return str(pl.Series([int(seconds * 1e6)]).cast(pl.Datetime("us")).dt.to_string("%Y-%m-%d %H:%M:%S")[0])


def present(cells: pl.Series) -> pl.Series:
    """Cells without spaces around them; words for nothing become null."""
    trimmed = cells.cast(pl.String).str.strip_chars()
    return trimmed.set(trimmed.str.to_lowercase().is_in(MISSING).fill_null(False), None)


def _fix(raw: RawTable) -> str:
    return "is this the right file and format?" if len(raw.frame) < 3 else "correct the cell or remove the line"
