"""The load at which a policy saturates, by bisection.

A load is sustained when the overload guard (`report.metrics.steadiness`) calls most of its runs steady: no more work is
offered than the cluster can do, and the queue does not keep growing. Between a load that is sustained and one that is
not, the middle is tried until they are close. That finds a boundary even where sustained loads are no interval, as can
happen by chance with few jobs; the table of all loads tried shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gantline.core.errors import UsageError
from gantline.experiment.grid import Grid, PolicyChoice
from gantline.experiment.setting import Setting
from gantline.experiment.sweep import Sweep

MOST_STEPS = 30
RunAll = Callable[[Grid], Sweep]
"""Runs a grid; the caller chooses folder, workers and progress."""


@dataclass(frozen=True)
class Saturation:
    """What the search found: the highest load sustained, the lowest that is not, and everything tried."""

    policy: str
    sustained: float
    """NaN if not even the lowest load is."""
    exceeded: float
    """NaN if even the highest load is sustained."""
    tried: pl.DataFrame
    """load, steady (share of seeds), queue (mean number of waiting jobs), jct_mean."""

    def __str__(self) -> str:
        if self.sustained != self.sustained:
            return f"{self.policy} does not even sustain a load of {self.exceeded:g}."
        if self.exceeded != self.exceeded:
            return f"{self.policy} sustains a load of {self.sustained:g}, the highest tried."
        return f"{self.policy} saturates between a load of {self.sustained:g} and {self.exceeded:g}."


def find_saturation(
    base: Setting,
    choice: PolicyChoice,
    run_all: RunAll,
    *,
    low: float,
    high: float,
    tolerance: float,
    seeds: Sequence[int] = (0, 1, 2),
    by: str = "load",
) -> Saturation:
    """Bisect between `low` and `high` until they are `tolerance` apart; `by` names what the load is set with."""
    if not 0 < low < high:
        raise UsageError(f"{low:g} to {high:g} is no range of loads", where="saturation", fix="give 0 < low < high")
    if not tolerance > 0:
        raise UsageError(f"a tolerance of {tolerance:g} is never reached", where="saturation", fix="give one above 0")
    rows: list[dict[str, float]] = []

    def sustained(load: float) -> bool:
        grid = Grid(base, (choice,), seeds=tuple(seeds), vary={by: (load,)})
        results = run_all(grid).results
        failed = results.filter(pl.col("state") == "failed")
        if failed.height:
            raise UsageError(f"{failed.height} of {results.height} runs failed: {failed['message'][0]}", where=f"load {load:g}")
        share = float(results["steady"].mean())  # type: ignore[arg-type]
        rows.append({"load": load, "steady": share, "queue": _mean(results, "queue_mean"), "jct_mean": _mean(results, "jct_mean")})
        return share > 0.5

    nan = float("nan")
    if not sustained(low):
        return Saturation(choice.title, nan, low, pl.DataFrame(rows))
    if sustained(high):
        return Saturation(choice.title, high, nan, pl.DataFrame(rows))
    for _ in range(MOST_STEPS):
        if high - low <= tolerance * (1 + 1e-9):
            break
        middle = _round_middle(low, high)
        low, high = (middle, high) if sustained(middle) else (low, middle)
    return Saturation(choice.title, low, high, pl.DataFrame(rows).sort("load"))


def runner(folder: Path, sweep: Callable[[Grid, Path], Sweep]) -> RunAll:
    """Runs each grid in a folder of its own below `folder`, so that a search can be repeated without running again."""
    return lambda grid: sweep(grid, folder / grid.cases()[0].hash[:12])


def _round_middle(low: float, high: float) -> float:
    """The middle, with no more digits than tell it from both ends, because people read it."""
    middle = (low + high) / 2
    for digits in range(1, 12):
        rounded = round(middle, digits)
        if abs(rounded - middle) <= 0.1 * (high - low):
            return rounded
    return middle


def _mean(results: pl.DataFrame, column: str) -> float:
    value = results[column].drop_nans().mean()
    return float("nan") if value is None else float(value)  # type: ignore[arg-type]
