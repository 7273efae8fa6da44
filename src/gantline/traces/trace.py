"""A trace: the jobs that arrive at a cluster, one row each, in the order of their arrival."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import TraceError, UsageError
from gantline.traces.cells import typed
from gantline.traces.faults import Finding, contradictions, missing_columns
from gantline.traces.read import RawTable, read_table
from gantline.traces.rename import alias_of, native
from gantline.traces.schema import COLUMNS, REQUIRED, fill_empty, is_metric, unknown_columns
from gantline.traces.write import write_frame


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in the order of their arrival; `docs/traces.md` lists the columns of ``frame``.

    ``source`` says where the rows come from and ``notes`` what was dropped, repaired or assumed on the way. Build one
    with :meth:`load`, :meth:`from_frame` or :meth:`from_records`, which check every row; the constructor only checks
    that the required columns are there with their types.
    """

    frame: pl.DataFrame
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in REQUIRED:
            if name not in self.columns:
                raise TraceError(f"column '{name}' is missing", file=self.source, field=name)
        for name, dtype in self.frame.schema.items():
            if name in COLUMNS and dtype != COLUMNS[name].dtype:
                what = f"holds {dtype} values, not {COLUMNS[name].dtype.__name__}"
                raise TraceError(what, file=self.source, field=name, fix="use Trace.from_frame")

    def fault(self, row: int, field: str, what: str, fix: str) -> TraceError:
        """The error that a job's row has; `what` goes on behind the job's name."""
        return TraceError(f"job '{self.frame['job'][row]}' {what}", file=self.source, line=row + 2, field=field, fix=fix)

    @classmethod
    def load(cls, path: str | Path, format: str = "", **options: object) -> Trace:
        """The trace in a CSV, JSON lines or Parquet file, which may be compressed; refuses contradictory rows.

        With a `format` it is a foreign log, such as "sacct", "philly" or "helios"; `options` are those of the format.

        >>> Trace.load("jobs.csv")
        >>> Trace.load("accounting.txt", format="sacct", keep="all")
        """
        if format:
            from gantline.traces.importers.registry import read_as  # importers make traces

            return read_as(format, path, options, cls)
        return cls.from_table(read_table(Path(path)))

    @classmethod
    def generate(cls, name: str, seed: int = 0, **settings: object) -> Trace:
        """A trace that a generator makes: the same name, seed and settings give the same jobs.

        >>> Trace.generate("philly", seed=1, jobs=2000, gpus=128, load=0.9)
        """
        from gantline.traces.generators.registry import make  # generators make traces

        return make(name, seed, settings, cls)

    @classmethod
    def of(cls, given: Any) -> Trace:
        """The trace that a value is: one already, a list of mappings, or a frame."""
        if isinstance(given, Trace):
            return given
        if given is None or isinstance(given, (bool, int, float)):
            fix = "give a file, a generator's name, a frame or a list of dictionaries"
            raise UsageError(f"{given!r} is no trace", where="trace", fix=fix)
        return cls.from_records(given) if isinstance(given, list) else cls.from_frame(given)

    @classmethod
    def from_frame(cls, frame: Any, source: str = "frame", notes: Iterable[str] = ()) -> Trace:
        """The trace in a polars frame, a pandas frame, or anything else that polars can take rows from."""
        if not isinstance(frame, pl.DataFrame):
            frame = _from_pandas(frame) if hasattr(frame, "dtypes") else pl.DataFrame(frame)
        return cls.from_table(RawTable(frame, source), notes)

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]], source: str = "records") -> Trace:
        """The trace in a list of mappings, one per job."""
        rows = [dict(record) for record in records]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: pl.Series(name, [row.get(name) for row in rows], strict=False) for name in names}
        return cls.from_table(RawTable(pl.DataFrame(columns), source))

    @classmethod
    def from_table(cls, raw: RawTable, notes: Iterable[str] = ()) -> Trace:
        """The trace in rows that know their lines; refuses the first contradictory one."""
        if raw.frame.width == 0:
            raise raw.error("holds no jobs", fix="a trace needs at least one row")
        named, said = native(raw.frame)
        raw = replace(raw, frame=named)
        if missing := list(missing_columns(raw.frame)):
            names = ", ".join(f"'{finding.field}'" for finding in missing)
            what = f"column{'s' * (len(missing) > 1)} {names} {'are' if len(missing) > 1 else 'is'} missing"
            raise raw.error(what, field=missing[0].field, fix=missing[0].fix)
        if raw.frame.is_empty():
            raise raw.error("holds no jobs", fix="a trace needs at least one row")
        frame, findings = typed(raw.frame)
        frame = fill_empty(frame)
        findings += contradictions(frame)
        if findings:
            raise _first(findings, raw)
        notes = (*notes, *said)
        if unknown := unknown_columns(frame):
            notes = (*notes, "kept beside the usual columns, for a regime that reads them: " + ", ".join(unknown))
            notes += tuple(f"'{name}' is not read (rename it if it is '{meant}')" for name in unknown if (meant := _unread(name, frame)))
        return cls(frame, raw.source, tuple(notes))

    def save(self, path: str | Path) -> Path:
        """Write the rows to a ``.csv``, ``.jsonl`` or ``.parquet`` file (``.gz`` may follow the first two)."""
        return write_frame(self.frame, Path(path))

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return tuple(self.frame.columns)

    def texts(self, name: str) -> list[str]:
        """A column of text."""
        return self.frame[name].to_list()

    def codes(self, name: str) -> tuple[list[str], Ints]:
        """The texts of a column in order of appearance, and a number per row that says which; an empty cell is the empty text.

        Worked out once: many runs may read the same trace.
        """
        if name not in self._codes:
            column = self.frame[name].cast(pl.String).fill_null("")
            names = column.unique(maintain_order=True)
            self._codes[name] = names.to_list(), column.cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
        texts, code = self._codes[name]
        return list(texts), code

    @cached_property
    def metrics(self) -> Mapping[str, Floats]:
        """By name, what the trace says of its jobs in numbers beyond what has a meaning of its own; NaN where a cell is empty.

        Policies and performance models read these columns. Worked out once, and read-only.
        """
        numeric = (name for name in self.columns if is_metric(name) and self.frame.schema[name].is_numeric())
        return {name: self.frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in numeric}

    @cached_property
    def _codes(self) -> dict[str, tuple[list[str], Ints]]:
        return {}

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the content, the same for every file format and column order."""
        digest = hashlib.sha256()
        for name in sorted(self.columns):
            column = self.frame[name]
            digest.update(f"{name}\0{column.dtype}\0{len(self)}\0".encode())
            for part in content(column):
                digest.update(part)
        return digest.hexdigest()

    def __len__(self) -> int:
        return self.frame.height

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Trace({len(self)} jobs from {self.source or 'nowhere'!r})"


def _first(findings: list[Finding], raw: RawTable) -> TraceError:
    """The refusal that names the earliest faulty row, and how many more there are."""
    found = min(findings, key=lambda finding: finding.rows[0] if finding.rows else -1)
    what = found.describe(0)
    more = sum(max(len(finding.rows), 1) for finding in findings) - 1
    if more:
        what += f" (and {more} more problem{'s' * (more > 1)})"
    fix = found.fix.replace("FILE", raw.source) if Path(raw.source).is_file() else found.fix.partition(": gantline")[0]
    return raw.error(what, row=found.rows[0] if found.rows else None, field=found.field, fix=fix)


def content(series: pl.Series) -> Iterator[bytes]:
    """What a column holds, in the parts that are hashed one after the other: which cells are empty, then numbers, or lengths and texts."""
    yield series.is_null().to_numpy().tobytes() if series.null_count() else bytes(len(series))
    if series.dtype.is_numeric():
        yield np.ascontiguousarray(series.fill_null(0).to_numpy()).tobytes()
    else:
        text = series.cast(pl.String).fill_null("") if not series.dtype.is_nested() else _json(series)
        yield text.str.len_bytes().to_numpy().tobytes()
        yield "".join(text.to_list()).encode()


def _json(series: pl.Series) -> pl.Series:
    return series.to_frame().select(pl.struct(pl.all()).struct.json_encode()).to_series()


def _from_pandas(frame: Any) -> pl.DataFrame:
    columns = {}
    for name in map(str, frame.columns):
        values = [None if value is None or value != value else value for value in frame[name].tolist()]
        columns[name] = pl.Series(name, values, strict=False)
    return pl.DataFrame(columns)


def _unread(name: str, frame: pl.DataFrame) -> str:
    """The native column that an unknown name stands for, if the table has none of that name."""
    native = alias_of(name) or ""
    return "" if native in frame.columns else native
