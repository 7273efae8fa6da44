"""The jobs of runs as columns for the searchable table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from gantline.lab.report.metrics import bounded_slowdown

MOST_JOBS = 10_000
_DIGITS = 6  # more than the table shows


@dataclass(frozen=True)
class JobColumn:
    """A column of the table; ``kind`` is how the page writes and sorts it."""

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


def job_tables(tables: Sequence[pl.DataFrame], most: int = MOST_JOBS) -> dict[str, Any]:
    """The jobs of several runs; columns that runs of one trace have in common are there once."""
    pool: list[Any] = []
    places: dict[str, int] = {}
    runs = []
    for jobs in tables:
        listed, note = _listed(jobs, most)
        own = []
        for column in COLUMNS:
            values = _values(listed[column.name], column)
            key = json.dumps(values)
            if key not in places:
                places[key] = len(pool)
                pool.append(values)
            own.append(places[key])
        runs.append({"columns": own, "note": note})
    return {"columns": [{"title": column.title, "kind": column.kind} for column in COLUMNS], "pool": pool, "runs": runs}


def _listed(jobs: pl.DataFrame, most: int) -> tuple[pl.DataFrame, str]:
    """The jobs in arrival order, and a note when only every n-th of them is listed."""
    ordered = jobs.with_columns(slowdown=bounded_slowdown(jobs)).sort("arrival", maintain_order=True)
    if ordered.height <= most:
        return ordered, ""
    rows = np.linspace(0, ordered.height - 1, most).astype(np.int64)
    return ordered[rows], f"Listed are {most:,} of {ordered.height:,} jobs, evenly over their arrivals; the numbers above count all."


def _values(series: pl.Series, column: JobColumn) -> Any:
    """The values; few words are written as their numbers in a list of words."""
    if column.kind == "text":
        texts = series.cast(pl.String).fill_null("")
        words = texts.unique(maintain_order=True)
        if len(words) > max(1, len(texts) // 4):
            return texts.to_list()
        codes = texts.replace_strict(words, range(len(words)), return_dtype=pl.Int64)
        return {"words": words.to_list(), "codes": codes.to_list()}
    if column.kind == "count":
        return series.to_list()
    known = series.cast(pl.Float64)
    known = pl.select(pl.when(known.is_finite()).then(known.round_sig_figs(_DIGITS))).to_series()
    return known.to_list()
