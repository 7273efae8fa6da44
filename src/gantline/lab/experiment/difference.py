"""How a metric changes from one policy to another, and whether that is more than chance in a table of many comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gantline.lab.experiment.intervals import Interval
from gantline.lab.experiment.significance import holm, seeds_needed
from gantline.lab.report.metrics import BY_KEY

Over = Literal["seeds", "draws", ""]
"""What the interval is over: seeds that draw other jobs, draws on the same jobs, or nothing, because there is one run."""


@dataclass(frozen=True)
class Difference:
    """`change` is relative: 0.1 means ten percent more than under the policy it is compared with."""

    policy: str
    against: str
    metric: str
    value: float
    value_against: float
    change: Interval
    over: Over = ""
    p: float = math.nan
    """Holm's p-value: it holds for the whole table. NaN where there is no interval."""
    comparisons: int = 1
    """How many comparisons the table makes."""
    spread: float = math.nan
    """The standard deviation of the change from seed to seed; of one run, estimated from its stretches."""
    doubts: str = ""
    """Doubts about the runs of the policy."""
    doubts_against: str = ""
    """The same of the policy it is compared with."""
    copies: int = 1
    """How many seeds gave one and the same run."""
    uneven: str = ""
    """A note if one completed fewer jobs than the other."""
    load: float | None = None
    """The load that every seed is stretched to, where the generator does so."""

    @property
    def doubtful(self) -> bool:
        """Whether the runs of either are in doubt."""
        return bool(self.doubts or self.doubts_against)

    @property
    def sign(self) -> int:
        """1: better, -1: worse; 0: undecided, because of doubts, of chance, or because there is no interval."""
        change = self.change
        if self.doubtful or not change.known or not self.p < 1.0 - change.confidence or change.low <= 0 <= change.high:
            return 0
        return 1 if (change.value > 0) == (BY_KEY[self.metric].better == "higher") else -1

    @property
    def needed(self) -> int | None:
        """How many seeds would detect a change of this size in this table; None where more than a thousand would not."""
        return seeds_needed(self.change.value, self.spread, self.change.confidence, self.comparisons)


def judged_together(tables: Sequence[Sequence[Difference]]) -> list[tuple[Difference, ...]]:
    """The same differences, each with a p-value that counts how many comparisons all the tables make."""
    everything = [one for table in tables for one in table]
    together = iter(holm([one.change.p if one.over else math.nan for one in everything]))
    return [tuple(replace(one, p=next(together), comparisons=len(everything)) for one in table) for table in tables]
