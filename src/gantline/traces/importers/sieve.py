"""A table on its way to becoming a trace, with a record of all that was dropped, mended or assumed."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.core.errors import TraceError
from gantline.traces.importers.table import date_of
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace


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

    def finish_log(self, cpu_jobs: bool) -> Trace:
        """The trace of a cluster's log: jobs that ran and had GPUs, or CPUs alone where these are kept too."""
        self.drop(pl.col("arrival").is_null(), "no time of submission")
        self.drop(pl.col("duration").is_null() | (pl.col("duration") <= 0), "never ran (no positive duration)")
        without = pl.col("gpus").is_null() | (pl.col("gpus") <= 0)
        if cpu_jobs and "cpus" in self.frame.columns:
            self.frame = self.frame.with_columns(pl.col("gpus").fill_null(0))
            without = without & ~(pl.col("cpus") > 0)
        self.drop(without, "no GPUs")
        if not self.frame.is_empty():
            self.note(f"time 0 is {date_of(float(self.frame['arrival'].to_numpy().min()))}")
        return self.finish(from_zero=True)

    def _make_ids_unique(self) -> None:
        count = len(self.frame) - self.frame["job"].n_unique()
        if count:
            job = pl.col("job").cast(pl.String)
            again = pl.int_range(pl.len()).over(job)
            self.note(f"renamed {count} repeated id{'s' * (count > 1)} (x, then x#2, x#3, ...)")
            name = pl.when(again > 0).then(pl.format("{}#{}", job, again + 1)).otherwise(job)
            self.frame = self.frame.with_columns(name.alias("job"))
