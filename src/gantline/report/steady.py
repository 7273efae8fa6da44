"""The overload guard: says when a run cannot have reached a steady state.

Averages of a system whose queue only grows depend on how long one watched. Two signs give it away: more work is offered
than the cluster can do, or the queue is longer in each stretch of time than in the one before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gantline.core.arrays import Floats
from gantline.report.areas import Steps, mean

WINDOWS = 5
GROWTH = 2.0
"""The queue counts as growing when it rose from window to window and the last mean is this many times the first."""


@dataclass(frozen=True)
class Steadiness:
    """What the guard saw while jobs kept arriving."""

    offered_load: float
    """GPU time asked for per GPU time there was, between the first and the last arrival; NaN if all came at once."""
    queue_means: tuple[float, ...]
    """Mean number of waiting jobs in successive stretches of that time."""

    @property
    def overloaded(self) -> bool:
        """Whether more work arrived than the cluster can do."""
        return self.offered_load > 1.0

    @property
    def growing(self) -> bool:
        """Whether the queue rose in every stretch and at least doubled; less than one waiting job is no queue."""
        means = self.queue_means
        rising = all(late > early for early, late in pairwise(means))
        return len(means) > 1 and rising and means[-1] >= max(1.0, GROWTH * means[0])

    @property
    def steady(self) -> bool:
        """Whether neither sign of overload shows."""
        return not (self.overloaded or self.growing)

    def __str__(self) -> str:
        if math.isnan(self.offered_load):
            return "All jobs arrive at once: there is no steady state to reach; compare makespans."
        if self.steady:
            return f"The offered load is {self.offered_load:.2f} of the cluster and the queue does not keep growing."
        queue = " -> ".join(f"{mean:.3g}" for mean in self.queue_means)
        reasons = []
        if self.overloaded:
            reasons.append(f"jobs ask for {self.offered_load:.2f} times the GPU time there is")
        if self.growing:
            reasons.append(f"the mean queue keeps growing ({queue} jobs)")
        return f"No steady state: {' and '.join(reasons)}. Means depend on the length of the run; lower the load."


def judge(arrivals: Floats, work: Floats, queue: Steps, devices: Steps, warmup: float = 0.0, windows: int = WINDOWS) -> Steadiness:
    """Look at the time between the first arrival (plus ``warmup`` seconds) and the last one.

    Of the jobs that were let in: when they arrived and how much GPU time they ask for. How many wait, and how many GPUs there are.
    """
    if not arrivals.size:
        return Steadiness(math.nan, ())
    start, end = float(arrivals.min()) + warmup, float(arrivals.max())
    if not end > start:
        return Steadiness(math.nan, ())
    # The last arrival closes the stretch, so its work belongs to the next one.
    asked = float(work[(arrivals >= start) & (arrivals < end)].sum())
    capacity = mean(devices, start, end) * (end - start)
    edges = np.linspace(start, end, windows + 1)
    means = tuple(mean(queue, float(a), float(b)) for a, b in pairwise(edges))
    return Steadiness(asked / capacity if capacity > 0 else math.inf, means)
