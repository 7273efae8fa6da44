"""Writing a table, at once or in blocks, so that half of it is never seen: to a temporary name, then renamed."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
from polars.io.plugins import register_io_source

from gantline.core.errors import NotFoundError, UsageError
from gantline.core.fields import FORMULA, NUMBER

FORMATS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".parquet")


def write_frame(frame: pl.DataFrame, path: Path) -> Path:
    """Write ``frame`` in the format that the end of the name asks for."""
    ending = ending_of(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        data = encode(frame, ending.removesuffix(".gz"))
        # A fixed time stamp keeps equal traces equal byte for byte.
        temporary.write_bytes(gzip.compress(data, compresslevel=6, mtime=0) if ending.endswith(".gz") else data)
        os.replace(temporary, path)
    except OSError as error:  # a full disk does not say which file it is about
        error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    return path


def ending_of(path: Path) -> str:
    """The format that the end of the name asks for, in a folder that exists."""
    ending = next((ending for ending in FORMATS if path.name.endswith(ending)), None)
    if ending is None:
        raise UsageError(f"'{path.name}' names no known format", where=str(path), fix="end it in " + ", ".join(FORMATS))
    if not path.parent.is_dir():
        raise NotFoundError("no such folder", where=str(path.parent))
    return ending


def encode(frame: pl.DataFrame, ending: str, header: bool = True) -> bytes:
    """The rows in that format; a header is that of CSV."""
    buffer = io.BytesIO()
    if ending == ".parquet":
        frame.write_parquet(buffer, statistics=True)
    elif "json" in ending:
        frame.write_ndjson(buffer)
    else:
        _flat(frame).write_csv(buffer, include_header=header)
    return buffer.getvalue()


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Lists and records as JSON text, because a CSV cell holds one value; texts that a spreadsheet would run begin with a quote."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    flat = frame.with_columns(pl.struct(pl.col(name)).struct.json_encode().alias(name) for name in nested)
    texts = [name for name, dtype in flat.schema.items() if dtype == pl.String]
    formula = pl.col(texts).str.contains(FORMULA) & ~pl.col(texts).str.contains(NUMBER) if texts else None
    return flat if formula is None else flat.with_columns(pl.when(formula).then("'" + pl.col(texts)).otherwise(pl.col(texts)).name.keep())


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
    first = next(frames)

    def source(columns: Any, predicate: Any, rows: Any, size: Any) -> Iterator[pl.DataFrame]:
        yield first
        yield from frames

    register_io_source(source, schema=first.schema).sink_parquet(path, statistics=True)
