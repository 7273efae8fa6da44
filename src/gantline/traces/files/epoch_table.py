"""Writes measured epochs by CPUs where Synergy's profiles are read from: ``epochs.csv`` of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from gantline.core.errors import TraceError
from gantline.traces.write import write_frame

EPOCHS = "epochs.csv"
COLUMNS = ("model", "cpus_per_gpu", "epoch_s", "data_GB", "memory_MBps", "steps")


def write_epochs(folder: Path, network: str, seconds: Mapping[float, float], data: float, bandwidth: float, steps: float) -> Path:
    """Enter the epochs of a network, by CPUs per GPU; rows of other networks stay."""
    path = folder / EPOCHS
    rows = [(network, float(cpus), round(seconds[cpus], 6), float(data), float(bandwidth), float(steps)) for cpus in sorted(seconds)]
    fresh = pl.DataFrame(rows, schema=list(COLUMNS), orient="row")
    if path.is_file():
        known = pl.read_csv(path)
        if tuple(known.columns) != COLUMNS:
            raise TraceError("has other columns", file=str(path), line=1, fix="it needs " + ",".join(COLUMNS))
        fresh = pl.concat([known.filter(pl.col("model") != network).cast(fresh.schema), fresh])
    folder.mkdir(parents=True, exist_ok=True)
    return write_frame(fresh, path)
