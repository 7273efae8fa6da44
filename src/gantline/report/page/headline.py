"""What a page says first: which run is best in the mean, by how much, and how sure that is; and which differences are more than chance.

Runs of one page have the same jobs, so differences are taken job by job. Intervals are Student's, over jobs: they say what another mix of
jobs might have given, not what another trace would.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl

from gantline.report.frames import RunLike, completed
from gantline.report.metrics import BY_KEY, bounded_slowdown
from gantline.report.numbers import spell
from gantline.workload.special_functions import stdtrit

COLUMNS = {"jct_mean": "jct", "queueing_mean": "queueing", "responsiveness_mean": "responsiveness", "slowdown_mean": "slowdown"}
"""Metrics that are means over jobs, and of what."""
CONFIDENCE = 0.95
FEWEST = 5


def paired_change(run: RunLike, other: RunLike, metric: str) -> tuple[float, float, float, int]:
    """How much lower the mean is than in the other run, as a share of it, with its interval and the number of jobs in both."""
    name = COLUMNS[metric]
    both = _times(other, name).join(_times(run, name), on="job", suffix="_here").drop_nulls()
    old, new = both[name].to_numpy(), both[f"{name}_here"].to_numpy()
    base = float(old.mean()) if old.size else 0.0
    if old.size < FEWEST or base <= 0:
        return math.nan, math.nan, math.nan, int(old.size)
    change = (old - new) / base
    reach = float(stdtrit(old.size - 1, (1 + CONFIDENCE) / 2)) * float(change.std(ddof=1)) / math.sqrt(old.size)
    middle = float(change.mean())
    return middle, middle - reach, middle + reach, int(old.size)


def headline(names: Sequence[str], runs: Sequence[RunLike], measures: Sequence[Mapping[str, float]], doubtful: Collection[int]) -> str:
    """One sentence: the lowest mean completion time, against the first run (or, if that is it, the second lowest)."""
    fit = [index for index in range(len(runs)) if index not in doubtful and math.isfinite(measures[index]["jct_mean"])]
    if len(fit) < 2:
        return ""
    order = sorted(fit, key=lambda index: measures[index]["jct_mean"])
    best, other = order[0], order[1] if order[0] == fit[0] else fit[0]
    told = spell(BY_KEY["jct_mean"], measures[best]["jct_mean"])
    change, low, high, jobs = paired_change(runs[best], runs[other], "jct_mean")
    if not math.isfinite(low):
        return f"{names[best]} has the lowest mean JCT, {told}; too few jobs ended in both runs for an interval."
    bounds = f"95 % interval {100 * low:.0f}..{100 * high:.0f} % over {jobs:,} jobs of this trace"
    if low <= 0:
        return f"{names[best]} has the lowest mean JCT, {told}, but no clear difference to {names[other]} ({bounds})."
    return f"{names[best]} has the lowest mean JCT, {told}: {100 * change:.0f} % below {names[other]} ({bounds})."


def separated(metric: str, best: Collection[int], runs: Sequence[RunLike], measures: Sequence[Mapping[str, float]]) -> bool:
    """Whether the best run differs from the next by more than its interval; metrics without pairs are never told apart."""
    if metric not in COLUMNS or len(best) != 1:
        return False
    first = next(iter(best))
    known = [index for index in range(len(runs)) if index != first and math.isfinite(measures[index][metric])]
    if not known:
        return False
    values = np.array([measures[index][metric] for index in known])
    nearest = known[int(np.argmin(values))]  # all of these are better when lower
    return paired_change(runs[first], runs[nearest], metric)[1] > 0


def _times(run: RunLike, name: str) -> pl.DataFrame:
    ended = completed(run.jobs)
    frame = ended.select("job", slowdown=bounded_slowdown(ended)) if name == "slowdown" else ended.select("job", name)
    return frame.filter(pl.col(name).is_finite())
