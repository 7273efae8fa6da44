"""Many comparisons in one table: which of them hold together, and how many seeds the others would need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from gantline.lab.experiment.intervals import fewest_samples

POWER = 0.8
"""The power: how often the seeds that are reported as needed would detect a change of the size that was seen."""
MOST_SEEDS = 1000


def holm(chances: Sequence[float]) -> list[float]:
    """p-values for a whole table (Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979); those not known stay so.

    Below 0.05: with at most 5 % probability any of the rows that are called different is not.
    """
    known = [index for index, chance in enumerate(chances) if not math.isnan(chance)]
    found, highest = [math.nan] * len(chances), 0.0
    for rank, index in enumerate(sorted(known, key=lambda index: chances[index])):
        highest = max(highest, min(1.0, (len(known) - rank) * chances[index]))
        found[index] = highest
    return found


def seeds_needed(change: float, spread: float, confidence: float, comparisons: int) -> int | None:
    """How many seeds would detect a change of this size, with a power of 80 %, in a table of so many comparisons; None: over a thousand.

    `spread`: the standard deviation of the change from seed to seed.
    """
    if not change or not math.isfinite(spread):
        return None
    counts = np.arange(fewest_samples(confidence), MOST_SEEDS + 1)
    level = (1.0 - confidence) / comparisons
    reach = stdtrit(counts - 1, 1.0 - level / 2.0) + stdtrit(counts - 1, POWER)
    enough = np.flatnonzero(reach * spread / np.sqrt(counts) <= abs(change))
    return int(counts[enough[0]]) if enough.size else None
