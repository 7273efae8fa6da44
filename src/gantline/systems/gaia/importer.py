"""Jobs of GAIA's simulator (ASPLOS 2024): batch jobs on CPUs.

As its authors store them (``arrival_time,length,cpus``) or with an id and the unit in the names (``job,submit_s,length_s,cpus``); times are
seconds. The jobs ask for no GPU.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace

_NAMES = (("arrival_time", "length"), ("submit_s", "length_s"))


def read(src: Path) -> Trace:
    """The jobs of a GAIA trace; times are kept as they are."""
    raw = read_foreign(src, ("cpus",))
    arrival, length = next((names for names in _NAMES if names[0] in raw.frame.columns), _NAMES[0])
    for name in (arrival, length):
        if name not in raw.frame.columns:
            raise raw.error(f"column '{name}' is missing", field=name, fix="arrival_time,length,cpus or job,submit_s,length_s,cpus")
    named = "job" in raw.frame.columns
    frame = pl.DataFrame(
        {
            "job": text(raw, "job") if named else pl.Series([str(row) for row in range(len(raw.frame))]),
            "arrival": number(raw, arrival, required=True),
            "gpus": pl.Series([0] * len(raw.frame)),
            "duration": number(raw, length, required=True),
            "cpus": number(raw, "cpus", required=True),
        }
    )
    return Sieve(frame, raw).finish(from_zero=False)
