"""Measured throughputs, from a value or a file."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import NotFoundError
from gantline.performance.throughput_table import ThroughputTable
from gantline.workload.unpack import read_text


def read_throughputs(given: ThroughputTable | str | Path) -> ThroughputTable:
    """A table, or the JSON file that holds one."""
    if isinstance(given, ThroughputTable):
        return given
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"throughputs {path}", fix="name a table in Gavel's layout (JSON)")
    return ThroughputTable.parse(read_text(path), str(path))
