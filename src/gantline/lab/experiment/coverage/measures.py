"""Many seeds of a heavy-tailed workload under several policies: what tables of a few seeds are drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster_spec import parse_cluster
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.snapshot import Snapshot
from gantline.lab.experiment.intervals import change_interval
from gantline.lab.experiment.verdict import Difference, judged_together
from gantline.lab.questions.past import past_what_if
from gantline.lab.report.metrics import steadiness
from gantline.simulator.simulate import simulate
from gantline.traces.generators import generate
from gantline.traces.generators.generic import work_per_job
from gantline.traces.generators.settings import WorkloadSettings

CLUSTER, GPUS, LOAD, JOBS = "4x4", 16, 0.9, 300
METRICS = ("jct_mean", "jct_p95", "makespan")
SHAPE = {"sizes": "1:0.5,2:0.2,4:0.2,8:0.1", "durations": "lognormal(median=1h, sigma=1.5)"}
EQUALS = tuple(f"equal {salt}" for salt in range(6))
RIVALS = ("fifo", "srtf", "las")

Population = Mapping[str, Floats]
"""Policy -> values, shape (seeds, metrics)."""


@dataclass(frozen=True)
class Workload:
    """Gangs with log-normal durations, 300 jobs, load 0.9 of 16 GPUs: `stretched` to that load in every seed, or as it falls."""

    stretched: bool
    shape: Mapping[str, Any]
    jobs: int = JOBS
    load: float = LOAD
    gpus: int = GPUS

    def settings(self) -> dict[str, Any]:
        """What the generator is given."""
        if self.stretched:
            return {"jobs": self.jobs, "load": self.load, "gpus": self.gpus, **self.shape}
        work = work_per_job(WorkloadSettings.read({"jobs": 1, "jobs_per_hour": 1, **self.shape}))
        return {"jobs": self.jobs, "jobs_per_hour": self.load * self.gpus / work * 3600.0, **self.shape}


WORKLOADS = {"load 0.9 in every seed": Workload(True, SHAPE), "load drawn around 0.9": Workload(False, SHAPE)}


def policies_of(names: tuple[str, ...]) -> dict[str, Policy | str]:
    """Policies by the names of this study."""
    return {name: RandomOrder(int(name.split()[1])) if name.startswith("equal") else name for name in names}


def draw_population(workload: Workload, names: tuple[str, ...], seeds: range) -> dict[str, Floats]:
    """Every policy on the jobs of every seed."""
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    for seed in seeds:
        trace = generate("generic", seed=seed, **workload.settings())
        for name, policy in policies_of(names).items():
            summary = simulate(trace, CLUSTER, policy).summary
            found[name].append([summary["average_jct"], summary["p95_jct"], summary["makespan"]])
    return {name: np.array(values) for name, values in found.items()}


# Policies that are equal: jobs in a random order, a different one for every salt.

_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of SplitMix64
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class RandomOrder(OrderPolicy):
    """Waiting jobs start in an order that is drawn from their arrival and the salt; running ones stay."""

    name: ClassVar[str] = "random-order"
    preempt: ClassVar[bool] = False

    salt: int = 0

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        drawn = snapshot.jobs.arrival.view(np.uint64) ^ np.uint64(_STEP * (self.salt + 1) % 2**64)
        for factor in _FACTORS:
            drawn = (drawn ^ (drawn >> np.uint64(30))) * np.uint64(factor)
        return (drawn ^ (drawn >> np.uint64(31))).astype(np.float64)

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


# How often verdicts are wrong where nothing differs, how often they detect what does, and how often intervals hold the truth.


def table_of(population: Population, names: Sequence[str], seeds: Ints) -> tuple[Difference, ...]:
    """The comparisons that `gantline compare` makes of these seeds: every policy against the first, every metric."""
    first, *others = names
    made = [
        Difference(
            name,
            first,
            metric,
            float(population[name][seeds, column].mean()),
            float(population[first][seeds, column].mean()),
            change_interval(population[first][seeds, column], population[name][seeds, column]),
            "seeds",
        )
        for name in others
        for column, metric in enumerate(METRICS)
    ]
    return judged_together([made])[0]


def wrong_tables(population: Population, names: Sequence[str], seeds: int, tables: int) -> float:
    """The share of tables of `seeds` seeds with any verb; where all policies are equal, each verb is wrong."""
    return sum(any(one.sign for one in table) for table in _tables(population, names, seeds, tables)) / tables


def power_over(population: Population, names: Sequence[str], seeds: int, tables: int) -> float:
    """The share of tables in which the mean JCT of the second policy differs from that of the first by more than chance."""
    return sum(bool(table[0].sign) for table in _tables(population, names, seeds, tables)) / tables


def _tables(population: Population, names: Sequence[str], seeds: int, tables: int) -> Iterator[tuple[Difference, ...]]:
    random, size = np.random.default_rng(seeds), len(population[names[0]])
    for _ in range(tables):
        yield table_of(population, names, random.choice(size, seeds, replace=False))


def coverage_over(population: Population, pair: tuple[str, str], column: int, seeds: int, confidence: float, draws: int) -> float:
    """How often the interval of a change holds the change of the whole population."""
    old, new = (population[name][:, column] for name in pair)
    truth = new.mean() / old.mean() - 1.0
    random, hits = np.random.default_rng(0), 0
    for _ in range(draws):
        rows = random.choice(len(old), seeds, replace=False)
        found = change_interval(old[rows], new[rows], confidence)
        hits += found.low <= truth <= found.high
    return hits / draws


# The empty start against Erlang's formula, and how often the overload guard is right.

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


# How often `what-if --history` holds the change over other traces of the same kind.


def history_coverage(workload: Workload, population: Population, pair: tuple[str, str], histories: range) -> float:
    """The share of histories whose interval of the change in mean JCT holds that of the population."""
    old, new = (population[name][:, METRICS.index("jct_mean")].mean() for name in pair)
    truth, place, hits = new / old - 1.0, parse_cluster(CLUSTER), 0
    for seed in histories:
        (found, *_) = past_what_if(generate("generic", seed=seed, **workload.settings()), place, *pair).differences
        hits += found.low <= truth <= found.high
    return hits / len(histories)
