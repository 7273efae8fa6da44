"""The load at which a policy saturates, and how sure that is: a bisection for every seed, and an interval over seeds.

A load is sustained by a seed when the overload guard (`report.steady`) calls its run steady: jobs need no more GPU time than there is, and
the queue does not keep growing. Between a load that is sustained and one that is not, the middle is tried until they are close. Where the
boundary lies differs from seed to seed, more so with few jobs: that is the uncertainty, and the width of the last bracket comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gantline.core.errors import UsageError
from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.intervals import Interval, mean_interval
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep

MOST_STEPS = 30
RunAll = Callable[[Sequence[Case]], Sweep]
"""Runs cases; the caller chooses folder, workers and progress."""


@dataclass(frozen=True)
class Saturation:
    """What the search found: a boundary for every seed, their mean with its interval, and everything tried."""

    policy: str
    load: Interval
    """The mean of the seeds' boundaries; its interval is over seeds, and wider by the width of their brackets."""
    below: int
    """Seeds that do not sustain even the lowest load."""
    above: int
    """Seeds that sustain even the highest."""
    tolerance: float
    tried: pl.DataFrame
    """load, runs, steady (share of the seeds tried there), queue (mean number of waiting jobs), jct_mean."""

    def __str__(self) -> str:
        seeds = self.load.samples
        lowest, *_, highest = self.tried["load"].to_list()
        if self.below == seeds:
            return f"{self.policy} does not even sustain a load of {lowest:g}{_of(seeds)}."
        if self.above == seeds:
            return f"{self.policy} sustains a load of {highest:g}, the highest tried{_of(seeds)}."
        text = f"{self.policy} saturates at a load of {self.load.value:.3g}"
        if self.load.known:
            text += f", {100 * self.load.confidence:g} % interval {self.load.low:.3g}..{self.load.high:.3g} over {seeds} seeds"
        else:
            text += f", to within {self.tolerance / 2:.2g}{_of(seeds)}; an interval needs 3 seeds at least"
        for count, words in ((self.below, f"do not even sustain {lowest:g}"), (self.above, f"sustain even {highest:g}")):
            text += f"; {count} of them {words}, so that the range is too narrow" if count else ""
        return f"{text}."


def find_saturation(
    base: Setting,
    choice: PolicyChoice,
    run_all: RunAll,
    *,
    low: float,
    high: float,
    tolerance: float,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    by: str = "load",
    confidence: float = 0.95,
) -> Saturation:
    """Bisect between `low` and `high` for every seed until they are `tolerance` apart; `by` names what the load is set with."""
    if not 0 < low < high:
        raise UsageError(f"{low:g} to {high:g} is no range of loads", where="saturation", fix="give 0 < low < high")
    if not tolerance > 0:
        raise UsageError(f"a tolerance of {tolerance:g} is never reached", where="saturation", fix="give one above 0")
    rows: list[dict[str, Any]] = []

    def sustained(wanted: dict[int, float]) -> dict[int, bool]:
        """Whether each seed sustains the load that is tried with it."""
        cases = [case for seed, load in wanted.items() for case in Grid(base, (choice,), seeds=(seed,), vary={by: (load,)}).cases()]
        results = run_all(cases).results
        failed = results.filter(pl.col("state") == "failed")
        if failed.height:
            where = f"load {min(wanted.values()):g}"
            raise UsageError(f"{failed.height} of {results.height} runs failed: {failed['message'][0]}", where=where)
        for load, row in zip(wanted.values(), results.select("steady", "queue_mean", "jct_mean").iter_rows(named=True)):
            rows.append({"load": load, **row})
        return dict(zip(wanted, results["steady"].to_list()))

    brackets = dict.fromkeys(seeds, (low, high))
    holds_low, holds_high = sustained(dict.fromkeys(seeds, low)), sustained(dict.fromkeys(seeds, high))
    below, above = [seed for seed in seeds if not holds_low[seed]], [seed for seed in seeds if holds_low[seed] and holds_high[seed]]
    brackets |= dict.fromkeys(below, (low, low)) | dict.fromkeys(above, (high, high))
    for _ in range(MOST_STEPS):
        wide = {seed: _round_middle(*ends) for seed, ends in brackets.items() if ends[1] - ends[0] > tolerance * (1 + 1e-9)}
        if not wide:
            break
        for seed, holds in sustained(wide).items():
            brackets[seed] = (wide[seed], brackets[seed][1]) if holds else (brackets[seed][0], wide[seed])
    return Saturation(choice.title, _boundary(list(brackets.values()), confidence), len(below), len(above), tolerance, _tried(rows))


def runner(folder: Path, sweep: Callable[[Sequence[Case], Path], Sweep]) -> RunAll:
    """Runs each step in a folder of its own below `folder`, so that a search can be repeated without running again."""
    return lambda cases: sweep(cases, folder / cases[0].hash[:12])


def _boundary(brackets: Sequence[tuple[float, float]], confidence: float) -> Interval:
    """The mean of the middles; half a bracket more on either side, because each boundary is known up to that."""
    ends = np.array(brackets)
    found = mean_interval(ends.mean(axis=1), confidence)
    half = float((ends[:, 1] - ends[:, 0]).mean()) / 2
    return replace(found, low=found.low - half, high=found.high + half)


def _tried(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows)
    means = (pl.col(name).fill_nan(None).mean().fill_null(math.nan) for name in ("queue_mean", "jct_mean"))
    return frame.group_by("load").agg(pl.len().alias("runs"), pl.col("steady").mean(), *means).sort("load").rename({"queue_mean": "queue"})


def _of(seeds: int) -> str:
    return f" ({seeds} seed{'s' if seeds > 1 else ''})"


def _round_middle(low: float, high: float) -> float:
    """The middle, with as few digits as distinguish it from both ends, because people read it."""
    middle = (low + high) / 2
    for digits in range(1, 12):
        rounded = round(middle, digits)
        if abs(rounded - middle) <= 0.1 * (high - low):
            return rounded
    return middle
