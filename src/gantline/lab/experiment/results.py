"""The table of a sweep: a row per case with its axes, its state, its remarks, and its metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.intervals import mean_interval
from gantline.lab.experiment.records import FAILED, Record
from gantline.lab.report.metrics import METRICS
from gantline.lab.report.run_warnings import MARK, UNSTEADY

HAPPENED = "as it happened"
"""The name of what a log records beside the simulated runs, as if it were a policy."""
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


def axes_of(results: pl.DataFrame) -> list[str]:
    """The columns of the axes: those between the policy and the hash of a run."""
    names = results.columns
    return names[names.index("policy") + 1 : names.index("hash")]


def varies(results: pl.DataFrame, axis: str) -> bool:
    """Whether the axis is there and has several values."""
    return axis in results.columns and results[axis].n_unique() > 1


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


# The runs of a sweep as values: its cases, and how each ended.


@dataclass(frozen=True, repr=False)
class SweepRuns:
    """A record per case, in the order of the grid: what comparisons, remarks and pages read."""

    cases: tuple[Case, ...]
    records: tuple[Record, ...]
    folder: Path
    reused: int

    @property
    def results(self) -> pl.DataFrame:
        """A row per case: axes, state, summary, metrics."""
        return results_frame(self.cases, self.records)

    @property
    def failures(self) -> list[tuple[Case, str]]:
        """The cases that failed, with their messages."""
        return [(case, record.message) for case, record in zip(self.cases, self.records) if record.state == FAILED]

    def jobs(self, case: Case) -> pl.DataFrame:
        """What happened to each job in a case; `tracked` marks those that count."""
        return self.records[self.cases.index(case)].jobs()


# The table that a sweep ends with: means over seeds with their intervals, a row per policy and place of the other axes.

SHOWN = ("jct_mean", "jct_p95", "utilization", "preemptions")


def means_of(results: pl.DataFrame, metrics: Sequence[str] = SHOWN) -> pl.DataFrame:
    """A row per policy and place: how many runs are done, and of each metric its mean, `low` and `high` (NaN: too few runs)."""
    places = ["policy", *(axis for axis in axes_of(results) if axis != "seed")]
    rows: list[dict[str, Any]] = []
    for place, group in results.group_by(places, maintain_order=True):
        done = group.filter(pl.col("state") == "done")
        row: dict[str, Any] = {**dict(zip(places, place)), "runs": done.height, "failed": group.height - done.height}
        row["mark"] = MARK if doubt_of(done["doubts"].to_list()) else ""
        counted = runs_that_count(done)
        for metric in metrics:
            interval = mean_interval(counted[metric].drop_nans().to_numpy())
            row |= {metric: interval.value, f"{metric}_low": interval.low, f"{metric}_high": interval.high}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def best_places(results: pl.DataFrame) -> str:
    """Which policy has the lowest mean completion time at which place of the other axes; runs in doubt are left out."""
    frame = means_of(results, ("jct_mean",))
    axes = [axis for axis in frame.columns[1 : frame.columns.index("runs")] if frame[axis].n_unique() > 1]
    best: dict[str, list[str]] = {}
    for place, group in frame.group_by(axes, maintain_order=True) if axes else [((), frame)]:
        fit = group.filter((pl.col("mark") == "") & pl.col("jct_mean").is_finite()).sort("jct_mean")
        where = ", ".join(f"{axis} {value:g}" if isinstance(value, float) else f"{axis} {value}" for axis, value in zip(axes, place))
        best.setdefault(str(fit["policy"][0]) if fit.height > 1 else "", []).append(where)
    undecided = best.pop("", [])
    if not best:
        return "No two policies can be compared: their runs failed or are in doubt."
    if len(best) == 1 and not undecided:
        return f"{next(iter(best))} has the lowest mean JCT{' everywhere' if axes else ''}."
    lines = [f"{policy} has the lowest mean JCT at {_and(places)}" for policy, places in best.items()]
    lines += [f"at {_and(undecided)} runs failed or are in doubt"] if undecided else []
    return f"{'; '.join(lines)}."


def _and(places: Sequence[str]) -> str:
    return places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"


def spread(low: float, high: float, spell: Any) -> str:
    """An interval as people read it: ``2.1..2.6 h``; nothing where there is none, or where nothing varies."""
    if not low < high:
        return ""
    first, last = spell(low), spell(high)
    number, _, unit = first.partition(" ")
    return f"{number}..{last}" if unit and last.endswith(f" {unit}") else f"{first}..{last}"
