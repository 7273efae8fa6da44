"""A trace that is too long for memory: a Parquet file, read and checked some jobs at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gantline.core.errors import NotFoundError, TraceError
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace, content

_SHARE = 1 << 24  # bytes read at once


@dataclass(frozen=True)
class TraceBlocks:
    """The jobs of a Parquet file in blocks; each is a `Trace` that has been checked as a whole file is."""

    path: Path
    block: int

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise NotFoundError("no such trace", where=str(self.path))
        with self.path.open("rb") as file:
            if file.read(4) != b"PAR1":
                fix = "write it as Parquet first: gantline trace convert FILE jobs.parquet"
                raise TraceError("only a Parquet file can be read in blocks", file=str(self.path), fix=fix)

    @property
    def source(self) -> str:
        return str(self.path)

    def __len__(self) -> int:
        return int(pl.scan_parquet(self.path).select(pl.len()).collect().item())

    def __iter__(self) -> Iterator[Trace]:
        for first in range(0, len(self), self.block):
            frame = pl.scan_parquet(self.path).slice(first, self.block).collect()
            lines = range(first + 1, first + frame.height + 1)
            yield Trace.from_table(RawTable(frame, self.source, lambda lines=lines: lines))  # type: ignore[misc]

    def checked(self, folder: Path) -> str:
        """Read everything once: jobs in order, each name once. The hash of the content comes back, which is that of `Trace`.

        A hash goes through one column after the other, the file through one block after the other: `folder` holds columns in between.
        """
        last, rows, kinds, names = -np.inf, 0, {}, []
        for trace in self:
            first = float(trace.frame["arrival"][0])
            if first < last:
                what = f"arrives at {first:g}, before the row above it at {last:g}"
                fix = "sort the rows by arrival: gantline trace check FILE --repair OUT does"
                raise TraceError(what, file=self.source, line=rows + 1, field="arrival", fix=fix)
            last, rows = float(trace.frame["arrival"][-1]), rows + len(trace)
            names.append(trace.frame["job"].hash().to_numpy())
            for name in trace.frame.columns:
                kinds[name] = trace.frame[name].dtype
                for number, part in enumerate(content(trace.frame[name])):
                    with (folder / f"{name.encode().hex()}.{number}").open("ab") as file:
                        file.write(part)
        if len(np.unique(np.concatenate(names))) < rows:
            raise TraceError("a job has the name of another", file=self.source, field="job", fix="names must be unique in the trace")
        digest = hashlib.sha256()
        for name in sorted(kinds):
            digest.update(f"{name}\0{kinds[name]}\0{rows}\0".encode())
            for path in sorted(folder.glob(f"{name.encode().hex()}.*")):
                with path.open("rb") as file:
                    while share := file.read(_SHARE):
                        digest.update(share)
                path.unlink()
        return digest.hexdigest()
