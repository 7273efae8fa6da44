"""The overload guard: says when a run cannot have reached a steady state, and how much an empty start may have hidden.

Averages of a system with a queue that only grows depend on how long it is observed. Two signs show it: jobs need more GPU time than there
is, with what the policy's own stops and rounds cost them, or the queue rises nearly all the time and is never empty in the second half.
Both have errors, which `docs/coverage.md` measures: a queue may rise by chance, and a slow rise looks like chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gantline.core.arrays import Floats
from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics.columns import columns_of
from gantline.simulator.areas import Steps, integral, mean
from gantline.simulator.run_columns import COMPLETED, REJECTED, RunColumns

WINDOWS = 10
TREND = 0.75
"""Kendall's tau of the windows from which on the queue counts as growing: 40 of 45 pairs in order."""
IDLE = 0.02
"""And the share of the second half in which the queue may be empty."""
NOTABLE = 0.1
"""From this share on an empty start is mentioned."""


@dataclass(frozen=True)
class Steadiness:
    """What the guard saw while jobs kept arriving."""

    offered_load: float
    """GPU time asked for per GPU time there was, between the first and the last arrival; NaN if all came at once."""
    queue_means: tuple[float, ...]
    """Mean number of waiting jobs in successive stretches of that time."""
    needed_load: float = math.nan
    """The offered load with the GPU time that jobs held without work: starts, stops, rests of rounds."""
    idle: float = 0.0
    """The share of the second half in which no job waited."""
    missing: float = 0.0
    """About how much lower mean queueing is than in a steady state, because the cluster was empty at first."""
    jobs: int = 0

    @property
    def overloaded(self) -> bool:
        """Whether jobs needed more GPU time than there was."""
        return max(self.offered_load, self.needed_load if math.isfinite(self.needed_load) else 0.0) > 1.0

    @property
    def growing(self) -> bool:
        """Whether the queue rose nearly all the time and did not empty; less than one waiting job is no queue."""
        means = self.queue_means
        pairs = [(late > early) - (late < early) for early, late in combinations(means, 2)]
        return len(means) > 1 and means[-1] >= 1.0 and self.idle <= IDLE and sum(pairs) >= TREND * len(pairs)

    @property
    def steady(self) -> bool:
        """Whether neither sign of overload shows."""
        return not (self.overloaded or self.growing)

    @property
    def from_empty(self) -> str:
        """That the run is short for its load, and how long one would have to be; empty where the start hardly matters."""
        if not self.steady or not self.missing >= NOTABLE:
            return ""
        enough = -math.log1p(-min(self.missing, 0.999)) / 0.05 * self.jobs
        digits = 10 ** max(0, int(math.log10(enough)) - 1)
        return (
            f"the cluster is empty at first: {self.jobs:,} jobs at a load of {self.offered_load:.2f} show mean queueing about "
            f"{100 * self.missing:.0f} % below that of a steady state (about {digits * math.ceil(enough / digits):,} jobs would come "
            "within 5 %; --warmup auto leaves the beginning out)"
        )

    def __str__(self) -> str:
        if math.isnan(self.offered_load):
            return "All jobs arrive at once: there is no steady state to reach; compare makespans."
        if self.steady:
            return f"The offered load is {self.offered_load:.2f} of the cluster, and the queue shows no growth that lasts."
        queue = " -> ".join(f"{mean:.3g}" for mean in self.queue_means[:: max(1, len(self.queue_means) // 5)])
        reasons = []
        if self.offered_load > 1.0:
            reasons.append(f"jobs ask for {self.offered_load:.2f} times the GPU time there is")
        elif self.overloaded:
            reasons.append(
                f"jobs ask for {self.offered_load:.2f} of the GPU time there is, and hold {self.needed_load:.2f} of it with what starts, "
                "stops and rounds cost"
            )
        if self.growing:
            reasons.append(f"the mean queue keeps growing ({queue} jobs)")
        return f"No steady state: {' and '.join(reasons)}. Means depend on the length of the run; lower the load."


def judge(
    arrivals: Floats, work: Floats, queue: Steps, devices: Steps, warmup: float = 0.0, windows: int = WINDOWS, lost: Floats | None = None
) -> Steadiness:
    """Look at the time between the first arrival (plus ``warmup`` seconds) and the last one.

    Of the jobs that were let in: when they arrived, how much GPU time they ask for, and how much more they held without doing work.
    How many wait, and how many GPUs there are.
    """
    if not arrivals.size:
        return Steadiness(math.nan, ())
    start, end = float(arrivals.min()) + warmup, float(arrivals.max())
    if not end > start:
        return Steadiness(math.nan, ())
    # The last arrival closes the stretch, so its work belongs to the next one.
    inside = (arrivals >= start) & (arrivals < end)
    requested, more = float(work[inside].sum()), 0.0 if lost is None else float(lost[inside].sum())
    capacity = mean(devices, start, end) * (end - start)
    edges = np.linspace(start, end, windows + 1)
    means = tuple((np.diff(integral(*queue, edges)) / np.diff(edges)).tolist())
    # Without GPUs: jobs of CPUs alone need none.
    none = [math.inf if found > 0 else 0.0 for found in (requested, requested + more)]
    load, needed = (requested / capacity, (requested + more) / capacity) if capacity > 0 else none
    idle = mean((queue[0], (queue[1] <= 0).astype(np.float64)), (start + end) / 2, end)
    missing = 0.0 if warmup > 0 or capacity <= 0 else from_empty_share(work, needed, capacity / (end - start))
    return Steadiness(load, means, needed, idle, missing, int(arrivals.size))


def from_empty_share(work: Floats, load: float, devices: float) -> float:
    """About how much of a steady state's mean queueing is missing in a run that begins with an empty cluster; 0 where it is overloaded.

    In heavy traffic the missing part is half of E[S^2]/E[S]^2 * load^2 / (1 - load)^2 jobs' worth (the deficit of reflected Brownian motion
    started at zero: Abate and Whitt, Advances in Applied Probability 1987), and the devices have to fill first, which takes about
    1.6 load ln(1 / (1 - load)) jobs for each that can run at once. ``docs/coverage.md`` holds it against Erlang's formula.
    """
    if not 0 < load < 1 or not work.any():
        return 0.0
    first, second = float(work.mean()), float((work**2).mean())
    queue = 0.5 * second / first**2 * (load / (1.0 - load)) ** 2
    fill = 1.6 * load * -math.log1p(-load) * devices
    return 1.0 - math.exp(-(queue + fill) / work.size)


def steadiness(run: RunLike) -> Steadiness:
    """Look at the time between the first arrival, plus the warm-up that the run left out, and the last one."""
    return steadiness_of(columns_of(run))


def steadiness_of(run: RunColumns, warmup: float | None = None) -> Steadiness:
    """The same for a run as arrays, with another warm-up where one is given."""
    warmup = float(run.summary.get("warmup") or 0.0) if warmup is None else warmup
    jobs, series = run.jobs, run.series
    work = jobs.gpus * jobs.duration
    let_in = jobs.state != REJECTED
    queue, devices = (series.time, series.queued), (series.time, series.total_gpus)
    return judge(jobs.arrival[let_in], work[let_in], queue, devices, warmup, lost=_lost(run, work)[let_in])


def _lost(run: RunColumns, work: Floats) -> Floats:
    """GPU time that a job held beyond what it asks for. Of one that was given more devices than it asked for nothing is known: they may
    have been spare."""
    jobs, spans = run.jobs, run.spans
    widest = np.full(len(jobs) + 1, -1)
    np.maximum.at(widest, spans.row, spans.gpus)
    within = (jobs.state == COMPLETED) & (widest[:-1] >= 0) & (widest[:-1] <= jobs.gpus)
    return np.nan_to_num(np.where(within, np.maximum(jobs.gpu_seconds - work, 0.0), 0.0), nan=0.0)
