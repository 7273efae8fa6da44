"""The table of a sweep: a row per case with its axes, its state, its remarks, and its metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.records import Record
from gantline.lab.report.doubts import UNSTEADY
from gantline.lab.report.metrics import METRICS

_COPIED = (
    "log_hash", "trace_hash", "version", "decisions", "lost_turns", "rounds", "steady", "doubts", "free_stops", "bounded", "wall_seconds",
)  # fmt: skip


def results_frame(cases: Sequence[Case], records: Sequence[Record]) -> pl.DataFrame:
    """A row per case. Unknown numbers are NaN; axes that mix numbers and text are text."""
    axes = list(dict.fromkeys(name for case in cases for name in [*case.axes, *case.parameters]))
    columns: dict[str, pl.Series] = {"name": pl.Series([case.name for case in cases], dtype=pl.String)}
    columns["policy"] = pl.Series([case.policy for case in cases], dtype=pl.String)
    for axis in axes:
        values = [{**case.axes, **case.parameters}.get(axis) for case in cases]
        columns[axis] = _column(values if axis == "cluster" else _numbers(values))
    columns["hash"] = pl.Series([case.hash for case in cases], dtype=pl.String)
    columns["state"] = pl.Series([record.state for record in records], dtype=pl.String)
    columns["message"] = pl.Series([record.message for record in records], dtype=pl.String)
    for key in _COPIED:
        columns[key] = _column([record.summary.get(key) for record in records])
    for metric in METRICS:
        values = [record.measures.get(metric.key) for record in records]
        columns[metric.key] = pl.Series([float("nan") if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.DataFrame(columns)


def same_runs(results: pl.DataFrame) -> bool:
    """Whether there are several seeds of each case, but every seed gave the same run: nothing in it is random."""
    names = results.columns
    place = [name for name in names[names.index("policy") : names.index("hash")] if name != "seed"]
    each = results.group_by(place).agg(runs=pl.len(), different=pl.col("log_hash").n_unique())
    return bool((each["runs"] > 1).any() and (each["different"] == 1).all())


def runs_that_count(runs: pl.DataFrame) -> pl.DataFrame:
    """Of the runs of one policy at one place, those that means are taken over: every seed, or one where all seeds gave the same run."""
    return runs.head(1) if runs.height > 1 and runs["log_hash"].n_unique() == 1 else runs


def doubts_over(results: pl.DataFrame, policy: str) -> str:
    """The doubts about the runs of a policy together; empty: none."""
    return doubt_of(results.filter((pl.col("policy") == policy) & (pl.col("state") == "done"))["doubts"].to_list())


def doubt_of(doubts: Sequence[str | None]) -> str:
    """One doubt about several seeds, from the doubts of each; empty where there is none.

    A run that lost turns or jobs is no result, so one of them is enough. A queue that grows happens by chance too: it counts where most
    seeds show it, so that more seeds decide more.
    """
    broken = [text for text in doubts if text and text != UNSTEADY]
    unsteady = [text for text in doubts if text and UNSTEADY in text]
    if broken:
        return broken[0] if len(doubts) == 1 else f"in {len(broken)} of {len(doubts)} runs, in the first of them {broken[0]}"
    if 2 * len(unsteady) > len(doubts):
        return UNSTEADY if len(doubts) == 1 else f"{UNSTEADY} in {len(unsteady)} of {len(doubts)} runs"
    return ""


def _numbers(values: list[Any]) -> list[Any]:
    """Values that were given as text and are numbers all of them, such as those of ``--vary trace.jobs=40,60``; others as they are."""
    if not all(isinstance(value, str) for value in values if value is not None):
        return values
    try:
        found = [None if value is None else float(value) for value in values]
    except ValueError:
        return values
    if not all(value is None or math.isfinite(value) for value in found):
        return values
    whole = all(value is None or value.is_integer() for value in found)
    return [None if value is None else int(value) if whole else value for value in found]


def _column(values: list[Any]) -> pl.Series:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return pl.Series(values, dtype=pl.Boolean)
    if known and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        whole = all(isinstance(value, int) for value in known)
        return pl.Series(values, dtype=pl.Int64 if whole else pl.Float64, strict=False)
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
