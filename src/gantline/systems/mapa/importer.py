"""MAPA's job lines: ``num_gpus,pattern,arrival_time,service_time,bw_sensitive,net``, with or without that header; times in its cycles."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace
from gantline.traces.unpack import unpack

_COLUMNS = ("num_gpus", "pattern", "arrival_time", "service_time", "bw_sensitive", "net")
_PATTERNS = ("ring", "clique", "star")


def read(src: Path) -> Trace:
    """The jobs in the order of the file; a cycle is a second, and every job arrives when the file says."""
    bare = unpack(src).lstrip()[:1].isdigit()
    raw = read_foreign(src, _COLUMNS, columns=_COLUMNS if bare else None)
    pattern = text(raw, "pattern").str.to_lowercase()
    unknown = (~pattern.is_in(_PATTERNS)).arg_true()
    if len(unknown):
        row = int(unknown[0])
        raise raw.error(f"no pattern is called '{pattern[row]}'", row=row, field="pattern", fix=", ".join(_PATTERNS))
    frame = pl.DataFrame(
        {
            "job": [str(at + 1) for at in range(len(raw.frame))],
            "arrival": number(raw, "arrival_time", required=True),
            "gpus": number(raw, "num_gpus", required=True),
            "duration": number(raw, "service_time", required=True),
            "model": text(raw, "net"),
            "bw_sensitive": number(raw, "bw_sensitive", required=True),
            "pattern": pattern,
        }
    )
    return Sieve(frame, raw).finish(from_zero=False)
