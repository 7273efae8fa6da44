"""Writing a table so that half of it is never seen: to a temporary name first, then renamed."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import polars as pl

from gantline.core.errors import NotFoundError, UsageError
from gantline.core.plain_text import FORMULA, NUMBER

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
