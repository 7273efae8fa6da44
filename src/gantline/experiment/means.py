"""The table that a sweep ends with: means over seeds with their intervals, a row per policy and place of the other axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from gantline.experiment.charts import axes_of
from gantline.experiment.intervals import mean_interval
from gantline.experiment.results import doubt_of, runs_that_count
from gantline.report.doubts import MARK

SHOWN = ("jct_mean", "jct_p95", "utilization", "preemptions")


def means_of(results: pl.DataFrame, metrics: Sequence[str] = SHOWN, *, confidence: float = 0.95) -> pl.DataFrame:
    """A row per policy and place: how many runs are done, and of each metric its mean, `low` and `high` (NaN: too few runs)."""
    places = ["policy", *(axis for axis in axes_of(results) if axis != "seed")]
    rows: list[dict[str, Any]] = []
    for place, group in results.group_by(places, maintain_order=True):
        done = group.filter(pl.col("state") == "done")
        row: dict[str, Any] = {**dict(zip(places, place)), "runs": done.height, "failed": group.height - done.height}
        row["mark"] = MARK if doubt_of(done["doubts"].to_list()) else ""
        counted = runs_that_count(done)
        for metric in metrics:
            interval = mean_interval(counted[metric].drop_nans().to_numpy(), confidence)
            row |= {metric: interval.value, f"{metric}_low": interval.low, f"{metric}_high": interval.high}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def spread(low: float, high: float, spell: Any) -> str:
    """An interval as people read it: ``2.1..2.6 h``; nothing where there is none, or where nothing varies."""
    if not low < high:
        return ""
    first, last = spell(low), spell(high)
    number, _, unit = first.partition(" ")
    return f"{number}..{last}" if unit and last.endswith(f" {unit}") else f"{first}..{last}"
