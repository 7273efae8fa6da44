"""What a run in blocks keeps on disk: columns whose lines are appended in order, and amended when more is known of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.tables import Tables
from gantline.engine.dense.records import Record, Records
from gantline.engine.log import INTERVAL_FLOATS, INTERVAL_INTS, Interval, Log
from gantline.engine.state import State
from gantline.simulator.run import Run
from gantline.simulator.run_columns import Held

_SHARE = 1 << 24  # bytes read at once


class ColumnFiles:
    """A matrix (column, line) in files, read as the tables are: ``files[column]`` and ``files[column, low:high]``.

    Columns of which nothing happens (`zero`) take no room; any other that is not kept is a mistake of the reader.
    """

    def __init__(self, folder: Path, name: str, kinds: Mapping[int, Any], read_as: Any = None, zero: tuple[int, ...] = ()) -> None:
        self._path = {column: folder / f"{name}{column}" for column in kinds}
        self._kind = {column: np.dtype(kind) for column, kind in kinds.items()}
        self._read_as, self._zero = read_as, zero
        self._lines = 0
        for path in self._path.values():
            path.touch()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._path), self._lines

    def append(self, values: Mapping[int, Any], lines: int) -> None:
        """More lines at the end; a column is given whole, or as one number for all of them."""
        for column, path in self._path.items():
            with path.open("ab") as file:
                file.write(np.broadcast_to(np.asarray(values[column], dtype=self._kind[column]), lines).tobytes())
        self._lines += lines

    def amend(self, places: NDArray[np.int64], values: Mapping[int, object]) -> None:
        """Other values in some lines."""
        if len(places):
            for column, value in values.items():
                np.memmap(self._path[column], self._kind[column], mode="r+")[places] = value

    def __getitem__(self, wanted: Any) -> NDArray[Any]:
        column, lines = wanted if isinstance(wanted, tuple) else (wanted, slice(None))
        if column in self._zero:
            return np.zeros(self._lines, dtype=self._read_as)[lines]
        low, high, _ = lines.indices(self._lines)
        kind = self._kind[column]
        found = np.fromfile(self._path[column], kind, count=max(high - low, 0), offset=low * kind.itemsize)
        return found if self._read_as is None else found.astype(self._read_as, copy=False)

    def bytes_of(self, column: int) -> Iterator[bytes]:
        """A column as it would lie in memory."""
        with self._path[column].open("rb") as file:
            while share := file.read(_SHARE):
                yield share


class LogOnDisk:
    """The log of a run, on disk. It reads as `engine.log.Log` does."""

    def __init__(self, folder: Path) -> None:
        self.LI = ColumnFiles(folder, "entry", dict.fromkeys(range(INTERVAL_INTS), np.int32))
        self.LF = ColumnFiles(folder, "time", dict.fromkeys(range(INTERVAL_FLOATS), np.float64))
        self._devices = ColumnFiles(folder, "device", {0: np.int32})

    def append(self, entry: Mapping[int, Any], time: Mapping[int, Any], devices: NDArray[np.int32]) -> None:
        """Intervals that have begun, and all their devices."""
        self.LI.append(entry, len(entry[Interval.ROW]))
        self.LF.append(time, len(entry[Interval.ROW]))
        self._devices.append({0: devices}, len(devices))

    @property
    def LD(self) -> NDArray[np.int32]:
        return self._devices[0]

    @property
    def LN(self) -> tuple[int, int]:
        return self.intervals, self._devices.shape[1]

    @property
    def intervals(self) -> int:
        return self.LI.shape[1]

    def hash(self) -> str:
        """The hash that the same log has in memory."""
        digest = hashlib.blake2b(digest_size=16)
        columns = [(self.LI, k) for k in range(INTERVAL_INTS)] + [(self.LF, k) for k in range(INTERVAL_FLOATS)] + [(self._devices, 0)]
        for files, column in columns:
            for share in files.bytes_of(column):
                digest.update(share)
        return digest.hexdigest()


# --- what jobs came to, and what they held --------------------------------------------------------------------------------
_FLOATS = (Job.ARRIVAL, Job.DEADLINE, Job.FIRST_START, Job.FINISH, Job.MARK, Job.SERVICE)
_INTS = (Job.PHASE, Job.PREEMPTIONS, Job.RESTARTS, Job.MIN_GPUS, Job.MAX_GPUS)


class Kept:
    """What has left the window, on disk."""

    def __init__(self, folder: Path) -> None:
        self.credit = 0.0
        self.log = LogOnDisk(folder)
        self.F = ColumnFiles(folder, "f", dict.fromkeys(_FLOATS, np.float64), np.float64, zero=(Job.LOST,))
        self.I = ColumnFiles(folder, "i", dict.fromkeys(_INTS, np.int32), np.int64)

    def take(self, block: Tables) -> None:
        """Jobs that are to come; what they come to is amended when they leave."""
        rows = block.F.shape[1]
        self.F.append({column: block.F[column] for column in _FLOATS}, rows)
        self.I.append({column: block.I[column] for column in _INTS}, rows)

    def begun(self, row: Any, reason: Any, offset: Any, count: Any, node: Any, time: Any, devices: Any) -> None:
        if len(offset) and offset[-1] > np.iinfo(np.int32).max:
            raise RefusedError("two thousand million devices were given out", where="--block", fix="cut the trace in two")
        entry = {
            Interval.ROW: row,
            Interval.OPTION: row,
            Interval.REASON: reason,
            Interval.OFFSET: offset,
            Interval.COUNT: count,
            Interval.NODE: node,
        }
        self.log.append(entry, {Interval.START: time[Interval.START], Interval.END: time[Interval.END]}, devices)

    def closed(self, intervals: Any, end: Any, reason: Any) -> None:
        self.log.LF.amend(intervals, {Interval.END: end})
        self.log.LI.amend(intervals, {Interval.REASON: reason})

    def left(self, rows: Any, jobs: Records) -> None:
        f, i = jobs
        first, starts = f[:, Record.FIRST_START], i[:, Record.STARTS]
        fields = {Job.FIRST_START: first, Job.FINISH: f[:, Record.FINISH], Job.MARK: np.where(starts > 0, first + self.credit, np.nan)}
        self.F.amend(rows, fields | {Job.SERVICE: f[:, Record.SERVICE]})
        self.I.amend(rows, {Job.PHASE: i[:, Record.STATE], Job.PREEMPTIONS: i[:, Record.STOPS], Job.RESTARTS: np.maximum(starts - 1, 0)})

    def tables(self, block: Tables) -> SimpleNamespace:
        """All jobs as a summary reads them; the cluster is that of any block."""
        return SimpleNamespace(F=self.F, I=self.I, cluster=block.cluster, NI=block.NI, D=block.D, performance=None, metrics={})

    def frames(self, states: Iterator[State], held: Held) -> Iterator[pl.DataFrame]:
        """A row per job, block after block."""
        first = 0
        for state in states:
            tables, last = state.tables, first + state.tables.F.shape[1]
            del tables.lent
            for column in _FLOATS:
                tables.F[column] = self.F[column, first:last]
            for column in _INTS:
                tables.I[column] = self.I[column, first:last]
            yield Run({}, tables, Log(), Held(held.seconds[first:last], held.device_seconds[first:last])).jobs
            first = last
