"""Writing a table that comes in blocks: the file is the one that the whole table would have made, and never half of it is seen."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from gantline.traces.write import encode, ending_of


def write_blocks(frames: Iterator[pl.DataFrame], path: Path) -> Path:
    """Write frames, one below the other, in the format that the end of the name asks for; what is not known is left empty."""
    ending = ending_of(path)
    known = (frame.with_columns(cs.float().fill_nan(None)) for frame in frames)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if ending == ".parquet":
            _parquet(known, temporary)
        else:
            with temporary.open("wb") as raw:
                zipped = ending.endswith(".gz")
                packed: Any = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, filename="", mtime=0) if zipped else raw
                for number, frame in enumerate(known):
                    packed.write(encode(frame, ending.removesuffix(".gz"), header=number == 0))
                if zipped:
                    packed.close()
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _parquet(frames: Iterator[pl.DataFrame], path: Path) -> None:
    from polars.io.plugins import register_io_source

    first = next(frames)

    def source(columns: Any, predicate: Any, rows: Any, size: Any) -> Iterator[pl.DataFrame]:
        yield first
        yield from frames

    register_io_source(source, schema=first.schema).sink_parquet(path, statistics=True)
