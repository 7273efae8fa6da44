"""Figures of a sweep: completion time against load, and the spread over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gantline.experiment.bootstrap import FEWEST, bootstrap
from gantline.experiment.sweep import Sweep
from gantline.report.figures import Chart, boxes_over_seeds, jct_against_load


def charts_of(sweep: Sweep, load: str = "load", unit: str = "") -> list[Chart]:
    """What the axes of the sweep allow: JCT against `load` where it varies, boxes where seeds do."""
    done = sweep.results.filter(pl.col("state") == "done")
    found = []
    if load in done.columns and done[load].n_unique() > 1 and done[load].dtype.is_numeric():
        found.append(jct_against_load(points_against(done, load), "load" if unit else load.rpartition(".")[2].replace("_", " "), unit))
    others = [name for case in sweep.cases for name in case.axes if name != "seed"]
    if done.height and "seed" in done.columns and done["seed"].n_unique() > 1 and not others:
        found.append(boxes_over_seeds(done.select(name="policy", value="jct_mean")))
    return found


def points_against(results: pl.DataFrame, load: str, metric: str = "jct_mean") -> pl.DataFrame:
    """A row per policy and load: the mean over seeds, with an interval where there are enough of them."""
    rows: list[dict[str, Any]] = []
    for (policy, value), group in results.group_by(["policy", load], maintain_order=True):
        values = group[metric].drop_nans().to_numpy()
        interval = bootstrap(values[None, :])
        rows.append({"name": policy, "load": float(value), "value": interval.value, "low": interval.low, "high": interval.high})
    points = pl.DataFrame(rows).filter(pl.col("value").is_finite())
    enough = bool(np.isfinite(points["low"].to_numpy()).all()) and results.group_by(["policy", load]).len()["len"].min() >= FEWEST  # type: ignore[operator]
    return points if enough else points.drop("low", "high")
