"""Files of rows as they are found: CSV, JSON lines or Parquet, plain or compressed.

Nothing is interpreted here: CSV cells stay text, so that a malformed number can be quoted; only a column of numbers
without a single doubtful cell is read as numbers at once. Every row knows the line (or row number) that a person would
look for; lines are counted only when asked for.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from gantline.core.errors import TraceError, UsageError
from gantline.core.json_reader import loads
from gantline.traces.schema import COLUMNS
from gantline.traces.unpack import most_unpacked, refuse_other_encodings, unpack

_NUMBERS = frozenset(column.name for column in COLUMNS.values() if column.kind != "text")
_POLARS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, RuntimeError)  # the last one: before polars 1.21


@dataclass(frozen=True)
class RawTable:
    """Rows as found in ``source``; ``line(row)`` is where a person finds row number ``row`` (0-based)."""

    frame: pl.DataFrame
    source: str
    locate: Callable[[], Sequence[int] | None] = lambda: None
    header_line: int | None = None

    @cached_property
    def _lines(self) -> Sequence[int] | None:
        return self.locate()

    def line(self, row: int) -> int:
        """The 1-based line of a text file, or the 1-based row of anything else."""
        return row + 1 if self._lines is None else self._lines[row]

    def error(self, what: str, *, row: int | None = None, field: str = "", fix: str = "") -> TraceError:
        """A refusal that points at one row."""
        line = self.header_line if row is None else self.line(row)
        return TraceError(what, file=self.source, line=line, field=field, fix=fix)


def read_table(path: Path, numbers: Collection[str] = _NUMBERS) -> RawTable:
    """The rows of a native trace file; the kind is recognised by the content. ``numbers`` is as in :func:`read_csv`."""
    data, source = unpack(path), str(path)
    if not data[:1024].strip() and not data.strip():  # the second look copies the file
        raise TraceError("is empty", file=source, fix="a trace needs a header line and one line per job")
    if data.startswith(b"PAR1"):
        return _parquet(data, source)
    refuse_other_encodings(data, source)
    data = data.removeprefix(b"\xef\xbb\xbf")
    first = data.lstrip()[:1]
    if first == b"{":
        return _json_lines(data, source)
    if first == b"[":
        raise TraceError("is one JSON list, not JSON lines", file=source, line=1, fix="jq -c '.[]' IN > OUT")
    if ".parquet" in Path(path).suffixes:
        raise TraceError("is not a Parquet file", file=source, fix="was the file cut short or renamed?")
    header = data.lstrip().split(b"\n", 1)[0]
    if header.startswith(b"JobID") and b"|" in header:
        raise TraceError(
            "is a log of Slurm", file=source, line=1, fix="add --format sacct, or import it: gantline trace import sacct IN OUT"
        )
    separator = "," if b"," in header else "\t" if b"\t" in header else ";" if b";" in header else ","
    return read_csv(data, source, separator=separator, numbers=numbers)


def read_csv(
    data: bytes,
    source: str,
    *,
    separator: str = ",",
    columns: Sequence[str] | None = None,
    quote: bool = True,
    numbers: Collection[str] = (),
) -> RawTable:
    """Separated text; ``columns`` names the fields of a file without a header line.

    The columns in ``numbers`` hold numbers if each of their cells is one or empty; else they are text like the others.
    """
    top, names, start = (0, list(columns), 0) if columns else _header(data, source, separator)
    # A header of our own: names with odd characters, and a first row that is short, are then no matter.
    plain = separator.join(map(str, range(len(names)))).encode() + b"\n"
    table = b"".join((plain, memoryview(data)[start:]))
    try:
        frame = _cells(table, separator, quote, [str(at) for at, name in enumerate(names) if name in numbers])
        frame.columns = names
    except _POLARS as error:
        raise _broken_csv(data[start:], top, source, separator, len(names), quote, error) from error
    filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    kept = None if filled.all() else filled.arg_true().to_list()

    def locate() -> Sequence[int]:
        lines: Sequence[int] = range(top + 1, top + 1 + len(filled))
        if quote and data.find(b'"', start) >= 0 and len(records := _records(data[start:], separator)) >= len(filled):
            lines = [top + line for line, _ in records]
        return lines if kept is None else [lines[row] for row in kept]

    return RawTable(frame if kept is None else frame.filter(filled), source, locate, top or None)


def _cells(table: bytes, separator: str, quote: bool, numbers: Sequence[str]) -> pl.DataFrame:
    """The cells below the first line as text, and as numbers where that is asked for and every cell of ``numbers`` is one."""

    def read(types: dict[str, type[pl.DataType]]) -> pl.DataFrame:
        mark = '"' if quote else None
        return pl.read_csv(io.BytesIO(table), separator=separator, infer_schema=False, schema_overrides=types, quote_char=mark)

    if numbers and b" " not in table and b"\t" not in table:  # blanks before a number are skipped unseen: those must be reported
        with suppress(*_POLARS):
            return read(dict.fromkeys(numbers, pl.Float64))
    return read({})


def _header(data: bytes, source: str, separator: str) -> tuple[int, list[str], int]:
    """The number of the header line, the names on it, and where everything below it begins."""
    blank = re.match(rb"(?:[ \t\r]*\n)*", data)
    above = blank.end() if blank else 0
    end = data.find(b"\n", above)
    start = len(data) if end < 0 else end + 1
    head, top = data[above : len(data) if end < 0 else end], data.count(b"\n", 0, above) + 1
    try:
        names = next(csv.reader([head.decode().rstrip("\r")], delimiter=separator))
    except csv.Error as error:
        what = "the header holds a carriage return"
        raise TraceError(what, file=source, line=top, fix="convert the line ends: tr '\\r' '\\n' < IN > OUT") from error
    for name in names:
        if names.count(name) > 1:
            raise TraceError(f"column '{name}' appears twice", file=source, line=top, field=name, fix="rename one")
    return top, names, start


def _records(data: bytes, separator: str) -> list[tuple[int, int]]:
    """The first line and the number of fields of each record, by a careful second reading."""
    csv.field_size_limit(max(len(data), 131072))
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    found, line = [], 1
    try:
        for fields in reader:
            found.append((line, len(fields)))
            line = reader.line_num + 1
    except csv.Error:  # a stray carriage return: count the lines as an editor does
        return _lines(data, separator)
    return found


def _lines(data: bytes, separator: str) -> list[tuple[int, int]]:
    return [(at, line.count(separator.encode()) + 1) for at, line in enumerate(data.split(b"\n"), start=1)]


def _broken_csv(data: bytes, top: int, source: str, separator: str, width: int, quote: bool, error: BaseException) -> TraceError:
    records = _records(data, separator) if quote else _lines(data, separator)
    for line, fields in records:
        if fields > width:
            what = f"has {fields} fields, the table has {width}"
            return TraceError(what, file=source, line=top + line, fix="quote values that contain the separator")
    last = top + records[-1][0] if records else top
    reason = "a quote that opens here is never closed" if b'"' in data else str(error).splitlines()[0]
    return TraceError(reason, file=source, line=last, fix="was the file cut short?")


def _parquet(data: bytes, source: str) -> RawTable:
    try:
        found = pl.scan_parquet(io.BytesIO(data))
        cells = found.select(pl.len()).collect().item() * len(found.collect_schema())
        if 8 * cells > most_unpacked(len(data)):
            rows = cells // max(len(found.collect_schema()), 1)
            raise UsageError(f"holds {rows:,} rows in {len(data) / 2**20:.1f} MB", where=source, fix="write it as CSV if you trust it")
        return RawTable(pl.read_parquet(io.BytesIO(data)), source)
    except _POLARS as error:
        reason = str(error).splitlines()[0]
        raise TraceError(f"is a damaged or truncated Parquet file: {reason}", file=source, fix="write it again") from error


def _json_lines(data: bytes, source: str) -> RawTable:
    def locate() -> list[int]:
        return [number for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]

    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        if any(data.count(b'"%s"' % name.encode()) > frame.height for name in frame.columns):  # the fast reader takes one of two values
            _records_by_line(data, source)
    except _POLARS:
        # The fast reader does not say where it failed, and refuses NaN and mixed types: read again, line by line.
        frame = _records_by_line(data, source)
    return RawTable(frame, source, locate)


def _records_by_line(data: bytes, source: str) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = loads(line, unique=True)
        except ValueError as error:
            what = f"is not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}"
            raise TraceError(what, file=source, line=number, fix="one JSON object per line; was the file cut?") from error
        if not isinstance(row, dict):
            raise TraceError("is not a JSON object", file=source, line=number, fix='write {"job": "a", ...}')
        rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: [as_text(row.get(name)) for row in rows] for name in names})


def as_text(value: object) -> str | None:
    """A cell as text; None stays None."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
