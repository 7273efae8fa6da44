"""Which jobs count: a range of arrivals, after a warm-up.

A run begins with an empty cluster, so its first jobs find it too easy, and its last jobs see no successors. Gavel (OSDI
2020) and Blox (EuroSys 2024) therefore measure a range of jobs in the order of arrival while others keep arriving.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError


@dataclass(frozen=True)
class Window:
    """The jobs ``first <= i < last`` in arrival order that arrive no sooner than ``warmup`` seconds after the first."""

    first: int = 0
    last: int | None = None
    warmup: float = 0.0

    def __post_init__(self) -> None:
        if self.first < 0 or self.warmup < 0:
            raise UsageError("a window begins at job 0 or later and its warm-up is not negative", where="window")
        if self.last is not None and self.last <= self.first:
            raise UsageError(f"the window of jobs {self.first}:{self.last} is empty", where="window", fix="give first < last")

    def select(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """The tracked jobs, in arrival order; ties keep the order of the frame."""
        return jobs[self.rows(jobs["arrival"].to_numpy())]

    def rows(self, arrival: Floats) -> Ints:
        """Where the tracked jobs stand among those that arrive at these times, in arrival order; ties keep their order."""
        order = np.argsort(arrival, kind="stable")
        if not order.size:
            return order
        tracked = order[self.first : self.last]
        if self.warmup > 0:
            tracked = tracked[arrival[tracked] >= arrival[order[0]] + self.warmup]
        if not tracked.size:
            raise UsageError(
                f"the window {self} holds none of the {order.size} jobs",
                where="window",
                fix="track earlier jobs or shorten the warm-up",
            )
        return tracked

    def __str__(self) -> str:
        text = f"{self.first}:{'' if self.last is None else self.last}"
        return f"{text} after {self.warmup:g} s" if self.warmup else text


def tracked_window(summary: Mapping[str, Any]) -> Window:
    """The jobs that a run says it tracked; all of them if it does not."""
    tracked = summary.get("track")
    return Window(int(tracked[0]), int(tracked[1])) if tracked else WHOLE


WHOLE = Window()
