"""Reading the tables of foreign formats, with the line of each bad cell and notes of all that was dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from gantline.core.errors import TraceError, near
from gantline.traces.dates import seconds_since_1970, zone_offsets
from gantline.traces.read import RawTable, read_csv
from gantline.traces.schema import COLUMNS
from gantline.traces.trace import Trace
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


def columns_of(raw: RawTable, names: Mapping[str, str | pl.Series], *, optional: bool = False) -> dict[str, pl.Series]:
    """Native columns by the names that they have here, read as text or as numbers; what is `optional` may be absent."""
    found: dict[str, pl.Series] = {}
    for native, name in names.items():
        if isinstance(name, pl.Series):
            found[native] = name
        elif name in raw.frame.columns or not optional:
            found[native] = text(raw, name) if COLUMNS[native].kind == "text" else number(raw, name)
    return found


def outcomes(cells: pl.Series, known: Mapping[str, str]) -> pl.Series:
    """How jobs ended, by the words of the log."""
    return cells.replace_strict(known, default="", return_dtype=pl.String)


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


class Sieve:
    """Rows under native column names; every step that loses or changes rows leaves a note with a count.

    Columns whose name begins with an underscore are working columns and do not reach the trace.
    """

    def __init__(self, frame: pl.DataFrame, origin: RawTable | Path) -> None:
        """``origin`` is the table that ``frame`` corresponds to row by row, or the file where rows have no lines."""
        self.frame = frame.with_row_index("_row")
        self.origin = origin
        self.source = origin.source if isinstance(origin, RawTable) else str(origin)
        self.notes: list[str] = []
        self.total = len(frame)

    def note(self, text: str) -> None:
        """Keep a remark that the reader of the trace should see."""
        self.notes.append(text)

    def drop(self, rows: pl.Expr, why: str) -> None:
        """Leave out the rows for which ``rows`` is true: ``dropped 12 of 100 jobs: <why>``."""
        kept = self.frame.filter(~rows.fill_null(False))
        lost = len(self.frame) - len(kept)
        if lost:
            self.note(f"dropped {lost} of {self.total} jobs: {why}")
        self.frame = kept

    def mend(self, rows: pl.Expr, column: str, value: pl.Expr, how: str) -> None:
        """Replace ``column`` where ``rows`` is true: ``mended 3 jobs: <how>``."""
        rows = rows.fill_null(False)
        count = int(self.frame.select(rows.sum()).item())
        if count:
            self.note(f"mended {count} job{'s' * (count > 1)}: {how}")
            self.frame = self.frame.with_columns(pl.when(rows).then(value).otherwise(pl.col(column)).alias(column))

    def finish(self, *, from_zero: bool) -> Trace:
        """The trace: sorted by arrival, ids made unique, time counted from the first arrival if asked."""
        if self.frame.is_empty():
            reasons = "; ".join(self.notes) or "the file holds no rows"
            raise TraceError(f"no job is left: {reasons}", file=self.source, fix="is this the right file and format?")
        if not self.frame["arrival"].is_sorted():
            early = int((self.frame["arrival"].diff() < 0).sum())
            self.note(f"sorted by arrival ({early} came before the row above)")
            self.frame = self.frame.sort("arrival", maintain_order=True)
        if from_zero:
            times = [name for name in ("arrival", "started", "ended") if name in self.frame.columns]
            self.frame = self.frame.with_columns(pl.col(times) - pl.col("arrival").min())
        self._make_ids_unique()
        rows, origin = self.frame["_row"].to_list(), self.origin
        frame = self.frame.drop([name for name in self.frame.columns if name.startswith("_")])
        if isinstance(origin, RawTable):
            table = RawTable(frame, self.source, lambda: [origin.line(row) for row in rows])
            return Trace.from_table(table, self.notes)
        try:
            return Trace.from_frame(frame, self.source, self.notes)
        except TraceError as error:
            what = f"{error.what} (job number {error.line} of those kept)"
            raise TraceError(what, file=self.source, field=error.field, fix=error.fix) from error

    def drop_unusable(
        self,
        cpu_jobs: bool = False,
        *,
        undated: str = "no time of submission",
        idle: str = "no positive duration",
        small: str = "no GPUs",
    ) -> None:
        """Leave out jobs without a time of arrival, without a run time, and without GPUs, or CPUs alone where these are kept too."""
        self.drop(pl.col("arrival").is_null(), undated)
        self.drop(pl.col("duration").is_null() | (pl.col("duration") <= 0), idle)
        without = pl.col("gpus").is_null() | (pl.col("gpus") <= 0)
        if cpu_jobs and "cpus" in self.frame.columns:
            self.frame = self.frame.with_columns(pl.col("gpus").fill_null(0))
            without = without & ~(pl.col("cpus") > 0)
        self.drop(without, small)

    def note_start(self, spell: Callable[[float], str]) -> None:
        """Say what the first arrival was in the log."""
        if not self.frame.is_empty():
            self.note(f"time 0 is {spell(float(self.frame['arrival'].to_numpy().min()))}")

    def note_parts(self) -> None:
        """Say how many jobs ask for a part of a GPU."""
        parts = int((self.frame["gpu_demand"] != self.frame["gpus"]).sum())
        if parts:
            self.note(f"rounded {parts} requests for parts of a GPU up to whole ones (exact in gpu_demand)")

    def _make_ids_unique(self) -> None:
        count = len(self.frame) - self.frame["job"].n_unique()
        if count:
            job = pl.col("job").cast(pl.String)
            again = pl.int_range(pl.len()).over(job)
            self.note(f"renamed {count} repeated id{'s' * (count > 1)} (x, then x#2, x#3, ...)")
            name = pl.when(again > 0).then(pl.format("{}#{}", job, again + 1)).otherwise(job)
            self.frame = self.frame.with_columns(name.alias("job"))
