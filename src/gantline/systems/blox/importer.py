"""Blox workloads (EuroSys 2024): ``job_index,arrival_s,total_iterations,iteration_time_s,num_gpus``.

The run time is the product of iterations and seconds per iteration. Blox rounds nothing, so iterations may be broken.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace


def read(src: Path) -> Trace:
    """The jobs of a Blox workload; times are kept as they are."""
    raw = read_foreign(src, ("job_index", "arrival_s", "total_iterations", "iteration_time_s", "num_gpus"))
    iterations = number(raw, "total_iterations", required=True)
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_index"),
            "arrival": number(raw, "arrival_s", required=True),
            "gpus": number(raw, "num_gpus", required=True),
            "duration": iterations * number(raw, "iteration_time_s", required=True),
        }
    )
    return Sieve(frame, raw).finish(from_zero=False)
