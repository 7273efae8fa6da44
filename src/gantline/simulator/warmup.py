"""Which jobs of a run come before its steady state: a rule that looks at how long jobs waited, in the order of their arrival.

A run begins with an empty cluster, so its first jobs find it too easy. MSER-5 (White, Cobb and Spratt, Proceedings of the Winter Simulation
Conference 2000) leaves out as many of the first batches of five as make the mean of the rest most certain, but never more than half.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.units import human_seconds

BATCH = 5
AUTO: Literal["auto"] = "auto"


def mser5(values: Floats) -> int:
    """How many of the first values to leave out."""
    count = len(values) // BATCH
    if count < 4:
        return 0
    means = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    left = np.arange(count, 0, -1)
    total, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means**2))
    uncertainty = (squares - total**2 / left) / left**2
    return BATCH * int(np.argmin(uncertainty[: count // 2 + 1]))


def counted_rows(rows: tuple[int, int], warmup: float | str, arrival: Floats, waited: Floats) -> tuple[int, int]:
    """The rows [low, high) that count: those of `rows` that arrive later than the warm-up after the first job of all.

    `waited`: how long each job waited in all; NaN for one that did not finish.
    """
    low, high = rows
    if warmup == AUTO:
        ended = low + np.flatnonzero(np.isfinite(waited[low:high]))
        left_out = mser5(waited[ended])
        return (int(ended[left_out]), high) if left_out else rows
    first = int(np.searchsorted(arrival, arrival[0] + float(warmup), side="left")) if arrival.size else 0
    if first >= high:
        what = f"all jobs arrive within the warm-up of {human_seconds(float(warmup))}"
        raise UsageError(what, where="--warmup", fix="give a shorter one")
    return max(low, first), high
