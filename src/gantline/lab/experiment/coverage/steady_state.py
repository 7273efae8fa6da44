"""The empty start against Erlang's formula, and how often the overload guard is right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.lab.experiment.coverage.population import SHAPE, Workload
from gantline.lab.report.metrics import steadiness
from gantline.simulator.simulate import simulate
from gantline.traces.generators import generate

MARKOV = {"durations": "weibull(scale=1h, shape=1)"}  # exponential, as Erlang's formula wants
SERVICE = 3600.0
WIDE = {"sizes": "1:0.6,16:0.4", "durations": "lognormal(median=10m, sigma=1)"}


def erlang_c(servers: int, load: float) -> float:
    """The mean time in the queue of M/M/c in service times (Erlang 1917), by the recursion of Erlang's loss formula."""
    offered, blocked = servers * load, 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    waits = blocked / (1.0 - load * (1.0 - blocked))
    return waits / (servers * (1.0 - load))


@dataclass(frozen=True)
class EmptyStart:
    """Mean queueing of runs from an empty cluster, as a share above or below Erlang's."""

    gpus: int
    load: float
    jobs: int
    plain: float
    warmed: float
    """With `--warmup auto`."""
    reported: float
    """What the guard estimates to be missing, on average."""
    error: float
    """The standard error of `plain`: runs differ much at high loads."""


def empty_start(cluster: str, gpus: int, load: float, jobs: int, runs: int) -> EmptyStart:
    """Runs of as many jobs under FIFO, with and without a warm-up."""
    workload, plain, warmed, missing = Workload(False, MARKOV, jobs, load, gpus), [], [], []
    for seed in range(runs):
        trace = generate("generic", seed=seed, **workload.settings())
        first, second = (simulate(trace, cluster, "fifo", warmup=warmup) for warmup in (0.0, "auto"))
        plain.append(first.summary["average_queueing"])
        warmed.append(second.summary["average_queueing"])
        missing.append(steadiness(first).missing)
    truth = erlang_c(gpus, load) * SERVICE
    above = [float(np.mean(each)) / truth - 1.0 for each in (plain, warmed)]
    error = float(np.std(plain, ddof=1)) / math.sqrt(runs) / truth
    return EmptyStart(gpus, load, jobs, above[0], above[1], -float(np.mean(missing)), error)


@dataclass(frozen=True)
class Guarded:
    """What the guard is tried on; `sustainable`: whether calling it unsteady is an error or right."""

    title: str
    sustainable: bool
    workload: Workload
    policy: str
    options: Mapping[str, Any]

    def unsteady(self, runs: int) -> float:
        """The share of runs that are called unsteady."""
        seen = 0
        for seed in range(runs):
            trace = generate("generic", seed=seed, **self.workload.settings())
            seen += not steadiness(simulate(trace, "4x4", self.policy, **self.options)).steady
        return seen / runs


def guarded(jobs: int) -> tuple[Guarded, ...]:
    """Loads that can be sustained and loads that cannot, in runs of so many jobs."""
    skip: dict[str, Any] = {"settings": {"backfill": "skip"}}
    costs: dict[str, Any] = {"round": 300.0, "costs": "1200"}
    return (
        Guarded("M/M/16, load 0.9 on average", True, Workload(False, MARKOV, jobs), "fifo", {}),
        Guarded("heavy tails, load 0.7 in every seed", True, Workload(True, SHAPE, jobs, 0.7), "fifo", skip),
        Guarded("heavy tails, load 0.9 in every seed", True, Workload(True, SHAPE, jobs), "fifo", skip),
        Guarded("heavy tails, load drawn around 0.9", True, Workload(False, SHAPE, jobs), "fifo", skip),
        Guarded("M/M/16, load 1.2 on average", False, Workload(False, MARKOV, jobs, 1.2), "fifo", {}),
        Guarded("gangs that FIFO leaves devices idle for, load 0.8", False, Workload(True, WIDE, jobs, 0.8), "fifo", {}),
        Guarded("load 0.8, LAS pays 20 min at every change", False, Workload(True, MARKOV, jobs, 0.8), "las", costs),
        Guarded("load 0.9, SRTF pays 20 min at every change", False, Workload(True, MARKOV, jobs), "srtf", costs),
    )


def lost_verdicts(chance: float, seeds: int) -> float:
    """How likely more than half of so many seeds are unsteady, where each is with this chance: one policy of a comparison is lost."""
    return sum(math.comb(seeds, k) * chance**k * (1 - chance) ** (seeds - k) for k in range(seeds // 2 + 1, seeds + 1))
