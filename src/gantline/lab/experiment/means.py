"""The table that a sweep ends with: means over seeds with their intervals, a row per policy and place of the other axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from gantline.lab.experiment.charts import axes_of
from gantline.lab.experiment.intervals import mean_interval
from gantline.lab.experiment.results import doubt_of, runs_that_count
from gantline.lab.report.doubts import MARK

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
