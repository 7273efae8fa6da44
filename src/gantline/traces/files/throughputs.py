"""Measured throughputs, from a value or a file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from gantline.core.errors import NotFoundError, TraceError
from gantline.models.throughput_table import ThroughputTable
from gantline.traces.files.bundles import is_bundle, parse_bundle
from gantline.traces.unpack import read_text

_COLUMNS = ("worker_type", "job_type", "scale_factor", "steps_per_s")


def read_throughputs(given: ThroughputTable | str | Path) -> ThroughputTable:
    """A table, or the file that holds one: JSON in Gavel's layout, a bundle of profiles, or CSV with a row per speed alone."""
    if isinstance(given, ThroughputTable):
        return given
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"throughputs {path}", fix="name a table in Gavel's layout (JSON)")
    text = read_text(path)
    if path.suffix == ".csv":
        return ThroughputTable.of(_from_rows(text, path), str(path))
    if is_bundle(text):
        return parse_bundle(text, str(path)).throughputs(str(path))
    return ThroughputTable.parse(text, str(path))


def _from_rows(text: str, path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Speeds alone from the columns worker_type, job_type, scale_factor, steps_per_s (as Shockwave's are published)."""
    reader = csv.DictReader(io.StringIO(text))
    for name in _COLUMNS:
        if name not in (reader.fieldnames or ()):
            raise TraceError(f"has no column '{name}'", file=str(path), line=1, fix="it needs " + ",".join(_COLUMNS))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for line, row in enumerate(reader, start=2):
        worker, kind, size, speed = (row[name] for name in _COLUMNS)
        try:
            found.setdefault(worker, {})[str((kind, int(size)))] = {"null": float(speed)}
        except (TypeError, ValueError):
            raise TraceError("holds no gang size and speed", file=str(path), line=line, fix="write v100,LM (batch size 5),1,12") from None
    return found
