"""The jobs of a run as columns for the searchable table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from gantline.report.metrics import bounded_slowdown

MOST_JOBS = 10_000


@dataclass(frozen=True)
class JobColumn:
    """A column of the table; ``kind`` says how the page writes and sorts it."""

    name: str
    title: str
    kind: Literal["text", "s", "ratio", "count"]


COLUMNS = (
    JobColumn("job", "Job", "text"),
    JobColumn("state", "State", "text"),
    JobColumn("user", "User", "text"),
    JobColumn("queue", "Queue", "text"),
    JobColumn("gpus", "GPUs", "count"),
    JobColumn("arrival", "Arrival", "s"),
    JobColumn("responsiveness", "First wait", "s"),
    JobColumn("jct", "JCT", "s"),
    JobColumn("duration", "Duration", "s"),
    JobColumn("slowdown", "Slowdown", "ratio"),
    JobColumn("preemptions", "Preemptions", "count"),
)


def job_columns(jobs: pl.DataFrame, most: int = MOST_JOBS) -> dict[str, Any]:
    """The columns in arrival order, and a note when only every so-manieth job is listed."""
    ordered = jobs.with_columns(slowdown=bounded_slowdown(jobs)).sort("arrival", maintain_order=True)
    note = ""
    if ordered.height > most:
        rows = np.linspace(0, ordered.height - 1, most).astype(np.int64)
        note = f"Listed are {most:,} of {ordered.height:,} jobs, evenly over their arrivals; the numbers above count all."
        ordered = ordered[rows]
    return {"columns": [_values(ordered[column.name], column) for column in COLUMNS], "note": note}


def _values(series: pl.Series, column: JobColumn) -> list[Any]:
    if column.kind == "text":
        return series.cast(pl.String).fill_null("").to_list()
    if column.kind == "count":
        return series.to_list()
    numbers = series.cast(pl.Float64).to_list()
    return [None if value is None or not math.isfinite(value) else float(f"{value:.8g}") for value in numbers]
