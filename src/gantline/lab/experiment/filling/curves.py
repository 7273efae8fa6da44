"""Curves of a filling: GPU in use and fragments, against how much has been asked for, in per cent of all GPUs."""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.core.arrays import Floats

BINS = 131


def curves(asked: Floats, used: Floats, fragments: Floats, capacity: float) -> pl.DataFrame:
    """Means over the pods after which so many per cent had been asked for; rounded as the authors' tables are.

    A bin without a pod takes those of its two neighbours; where these have none either, it has no value.
    """
    arrived = 100.0 * asked / capacity
    alloc = np.round(100.0 * used / capacity, 2)
    idle = capacity - used
    of_idle = np.round(np.divide(100.0 * fragments, idle, out=np.zeros_like(idle), where=idle > 0), 2)
    at = np.round(arrived).astype(np.int64)
    rows: list[tuple[int, float | None, float | None, float | None]] = []
    for bin in range(BINS):
        here = at == bin
        if not here.any():
            here = np.abs(at - bin) <= 1
        if not here.any():
            rows.append((bin, None, None, None))
            continue
        share = 100.0 * np.round(fragments[here], 2).mean() / capacity
        rows.append((bin, float(np.round(alloc[here].mean(), 2)), float(np.round(share, 2)), float(of_idle[here].mean())))
    schema = {"arrived": pl.Int64, "alloc": pl.Float64, "frag": pl.Float64, "frag_of_idle": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
