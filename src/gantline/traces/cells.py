"""From cells as found to typed columns, keeping a list of the cells that could not be read."""

from __future__ import annotations

import polars as pl

from gantline.traces.dates import DATE, seconds_of_words
from gantline.traces.faults import REPAIR, Finding
from gantline.traces.schema import COLUMNS, REQUIRED, TraceColumn

_MOST = 2**53  # beyond this a float cannot tell one whole number from the next


def typed(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
    """The frame with each native column in its type, and the cells that could not be read."""
    findings: list[Finding] = []
    columns: list[pl.Series] = []
    for series in frame:
        column = COLUMNS.get(series.name)
        if column is None:
            columns.append(_guess(series))
        elif column.kind == "text":
            columns.append(_text(series, column, findings))
        else:
            columns.append(_number(series, column, findings))
    return pl.DataFrame(columns), findings


def _found(name: str, mask: pl.Series, raw: pl.Series, what: str, fix: str, repairable: bool = False) -> Finding:
    cell = raw.filter(mask)
    cells = pl.DataFrame({"cell": cell.str.slice(0, 60) if cell.dtype == pl.String else cell})
    return Finding(name, what, fix, repairable, tuple(mask.arg_true().to_list()), cells)


def _text(series: pl.Series, column: TraceColumn, findings: list[Finding]) -> pl.Series:
    name = series.name
    if series.dtype.is_float():
        whole = series.cast(pl.Int64, strict=False)
        if (whole.cast(pl.Float64) == series).fill_null(True).all():
            series = whole
    if series.dtype.is_nested():
        findings.append(Finding(name, f"holds {series.dtype} values, not text", "write one text per cell"))
        return pl.Series(name, [""] * len(series), dtype=pl.String)
    text = series.cast(pl.String)
    if name in REQUIRED and (text.null_count() or (text == "").any()):
        empty = text.is_null() | (text == "")
        findings.append(_found(name, empty, text, "is empty", "give every job an id"))
    if column.words:
        unknown = ~text.is_in((*column.words, "")).fill_null(True)
        if not unknown.any():
            return text
        one_of = f"one of {', '.join(column.words)}, or empty"
        findings.append(_found(name, unknown, text, name + " {cell!r} is unknown", one_of))
    spaced = (text.str.strip_chars() != text).fill_null(False)
    if spaced.any():
        fix = f"remove the spaces: {REPAIR}"
        findings.append(_found(name, spaced, text, "{cell!r} has spaces around it", fix, True))
    return text


def _number(series: pl.Series, column: TraceColumn, findings: list[Finding]) -> pl.Series:
    name = series.name
    if not (series.dtype.is_numeric() or series.dtype in (pl.String, pl.Boolean, pl.Null)):
        fix = "give seconds from the start of the trace" if series.dtype.is_temporal() else "give a number"
        findings.append(Finding(name, f"holds {series.dtype} values, not numbers", fix))
        return pl.Series(name, [None] * len(series), dtype=column.dtype)
    raw = series.replace("", None) if series.dtype == pl.String else series
    number = raw.cast(pl.Float64, strict=False)
    malformed = raw.is_not_null() & number.is_null()
    if malformed.any():
        trimmed = raw.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False).is_not_null()
        spaced, wrong = malformed & trimmed, malformed & ~trimmed
        if spaced.any():
            fix = f"remove the spaces: {REPAIR}"
            findings.append(_found(name, spaced, raw, "{cell!r} has spaces around it", fix, True))
        if name == "arrival" and (dated := wrong & raw.cast(pl.String).str.contains(DATE)).any():
            wrong = wrong & ~dated
            fix = f"count seconds from the first arrival: {REPAIR}"
            findings.append(_found(name, dated, raw, "{cell!r} is a date", fix, True))
        if wrong.any():
            worded = column.unit == "s" and not seconds_of_words(raw.filter(wrong).cast(pl.String)).null_count()
            fix = f"turn times into seconds: {REPAIR}" if worded else _number_fix(column)
            findings.append(_found(name, wrong, raw, "{cell!r} is not a number", fix, worded))
    if name in REQUIRED:
        if raw.is_null().any():
            findings.append(_found(name, raw.is_null(), raw, "is empty", "give a number; was the line cut short?"))
    else:
        number = number.fill_nan(None)
    infinite = (number.is_nan() | number.is_infinite()).fill_null(False)
    if infinite.any():
        findings.append(_found(name, infinite, number, "{cell} is not finite", "give a number or drop the row"))
    if column.kind == "number":
        return number
    broken = (number != number.floor()).fill_null(False) & ~infinite
    if broken.any():
        findings.append(_found(name, broken, number, "{cell:g} is not whole", "give a whole number"))
    huge = (number.abs() > _MOST).fill_null(False) & ~infinite
    if huge.any():
        findings.append(_found(name, huge, number, "{cell:g} is too large", "give a number of things that exist"))
    return number.floor().cast(pl.Int64, strict=False)


def _number_fix(column: TraceColumn) -> str:
    if column.unit == "s":
        return "give seconds, counted from the start of the trace for points in time"
    return "give a number with a decimal point and no separators"


def _guess(series: pl.Series) -> pl.Series:
    """Numbers where every cell of an unknown text column is one, so that CSV and Parquet agree."""
    if series.dtype != pl.String or series.null_count() == len(series):
        return series
    for dtype in (pl.Int64, pl.Float64):
        number: pl.Series = series.cast(dtype, strict=False)
        whole = number.null_count() == series.null_count()
        if whole and (dtype == pl.Float64 or (number.cast(pl.String) == series).all()):
            return number
    return series
