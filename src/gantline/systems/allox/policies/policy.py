"""`allox`: which job runs where, by a least-cost matching of jobs to machines and positions (AlloX, EuroSys 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.plan import Plan
from gantline.core.policy import Policy, param
from gantline.core.snapshot import Snapshot
from gantline.systems.allox.policies import baselines
from gantline.systems.allox.policies.baselines import FillMisfit, Ways, Worth, exchange_rates, interchangeable
from gantline.systems.allox.policies.decision import behind_gangs, decide, next_ageing, nothing_hangs, read_weights
from gantline.systems.allox.policies.instant import Instant, Samples, check_profile

PAPER = "Le, Sun, Chowdhury, Liu: AlloX: Compute Allocation in Hybrid Clusters (EuroSys 2020)"

#: From so many waiting jobs on, what one matching leaves makes the next one quicker than keeping it costs.
_WORTH_KEEPING = 64


@dataclass(frozen=True)
class AlloX(Policy):
    """Jobs that may run on several device types go where a min-cost matching puts them; users with least progress are let in first."""

    name: ClassVar[str] = "allox"
    paper: ClassVar[str] = PAPER
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    alpha: float = field(
        default=0.5,
        metadata=param(
            "part of the users let in, least progress first: near 0 is fair, 1 is shortest mean time", above=0.0, high=1.0, unit="a part"
        ),
    )
    weights: tuple[str, ...] = field(default=(), metadata={"help": "how much users count: alice=2,bob=1 (else the weight of their jobs)"})
    preemptive: bool = field(default=False, metadata={"help": "whether jobs that run are matched again, and moved or stopped"})
    age: float = field(
        default=math.inf,
        metadata=param("seconds of waiting after which a job goes before all others, so that none starves", low=0.0, unit="seconds"),
    )

    patience: float = field(
        default=1800.0,
        metadata=param("the same for gangs, which small jobs would overtake for ever; the original has none", low=0.0, unit="seconds"),
    )
    fill: bool = field(
        default=True, metadata={"help": "whether others use the machines that a gang waits for, as long as it does not start later"}
    )
    profile: bool = field(default=False, metadata={"help": "whether jobs make two short runs on each device before they are matched"})

    def __post_init__(self) -> None:
        super().__post_init__()
        read_weights(self.weights)
        check_profile(self.profile, self.preemptive)

    def only_starts(self) -> bool:
        return not (self.preemptive or self.profile)

    def decide(self, snapshot: Snapshot) -> Plan:
        memory, samples = snapshot.memory, None
        if self.profile:
            samples, memory = Samples.after(snapshot), (snapshot.memory or {}).get("state")
        instant = Instant(snapshot, read_weights(self.weights), everyone=self.preemptive, samples=samples)
        chosen, state, steady = instant.ways.job[:0], None, True
        if len(instant.competing):
            chosen, state, steady = self._match(instant, memory)
        if samples is not None:
            state = {"samples": samples.made, "state": state}
        until = next_ageing(instant.arrival, snapshot.now, self.age) if steady and not self.preemptive else None
        return instant.plan(chosen, valid_until=until, memory=state)

    def _match(self, instant: Instant, memory: Any) -> tuple[Ints, Any, bool]:
        """The ways that start, what makes the next matching quick, and whether the answer holds while nothing happens."""
        state, tries, steady = None, 0, True

        def match(ways: Ways) -> Ints:
            nonlocal state, tries, steady
            waiting, machines, score, way = instant.matching(ways)
            tries += 1
            if not machines.idle.any():
                state = memory
                return ways.job[:0]
            weight = instant.pool.weight
            age = np.where(waiting.width.max(axis=1) > 1, min(self.age, self.patience), self.age)
            found, state = decide(waiting, machines, score, weight, now=instant.snapshot.now, alpha=self.alpha, age=age, state=memory)
            steady = nothing_hangs(waiting, machines, found)
            jobs, kinds = found.jobs, found.kinds
            if self.fill and not steady:
                more = behind_gangs(waiting, machines, found, instant.snapshot.now)
                jobs, kinds = np.concatenate((jobs, more[0])), np.concatenate((kinds, more[1]))
            return way[jobs, kinds]

        chosen = instant.place(match)
        return chosen, state if len(instant.competing) >= _WORTH_KEEPING else None, steady and tries == 1


# The baselines as policies: jobs in some order on the first thing that has room, decided anew at every event.
#
# Shortest pair of job and device first, with or without preemption and ageing; dominant resource fairness (DRF) over CPUs, GPUs and
# memory in four forms; equal shares, a fixed part of every resource for each user or one among users with jobs now.


@dataclass(frozen=True)
class Filling(Policy):
    """A baseline: `choose` returns which ways start, in order. Running jobs stay, unless the policy is preemptive."""

    preemptive: ClassVar[bool] = False

    weights: tuple[str, ...] = field(default=(), metadata={"help": "how much users count: alice=2,bob=1 (else the weight of their jobs)"})

    profile: bool = field(default=False, metadata={"help": "whether jobs make two short runs on each device before they are started"})

    def __post_init__(self) -> None:
        super().__post_init__()
        read_weights(self.weights)
        check_profile(self.profile, self.preemptive)

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        """Rows of ``ways`` that start."""
        raise TypeError(f"policy '{type(self).__name__}' has no choose()")

    def valid_until(self, instant: Instant) -> float | None:
        """When the answer may change by itself: never, where no running job competes and none ages."""
        return None if self.preemptive else math.inf

    def only_starts(self) -> bool:
        return not (self.preemptive or self.profile)

    def decide(self, snapshot: Snapshot) -> Plan:
        samples = Samples.after(snapshot) if self.profile else None
        instant = Instant(snapshot, read_weights(self.weights), everyone=self.preemptive, samples=samples)
        chosen = instant.ways.job[:0]
        if len(instant.ways.job):
            chosen = instant.place(lambda ways: self.choose(instant, ways))
        memory = None if samples is None else {"samples": samples.made}
        return instant.plan(chosen, valid_until=self.valid_until(instant), memory=memory)


@dataclass(frozen=True)
class ShortestPairFirst(Filling):
    """The shortest (job, device) pair that fits starts, on a slow device too; no job is preempted (SJF)."""

    name: ClassVar[str] = "allox.sjf"
    paper: ClassVar[str] = "Baseline of AlloX (EuroSys 2020), section 6"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        return baselines.sjf(ways, instant.pool)


@dataclass(frozen=True)
class ShortestRemainingPairFirst(ShortestPairFirst):
    """The shortest remaining (job, device) pair runs, whichever runs now; jobs move between devices (SRPT)."""

    name: ClassVar[str] = "allox.srpt"
    preemptive: ClassVar[bool] = True


@dataclass(frozen=True)
class AlloXPlus(Filling):
    """Shortest (job, device) pair first, but jobs that have waited long before all others, the oldest first."""

    name: ClassVar[str] = "allox.plus"
    paper: ClassVar[str] = f"{PAPER}, simulator"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    age: float = field(default=500.0, metadata=param("seconds of waiting after which a job goes first", low=0.0, unit="seconds"))

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        return baselines.allox_plus(ways, instant.pool, instant.arrival, instant.snapshot.now, self.age)

    def valid_until(self, instant: Instant) -> float:
        return math.inf if math.isinf(self.age) else next_ageing(instant.arrival, instant.snapshot.now, self.age)


_DRF = "Ghodsi et al.: Dominant Resource Fairness (NSDI 2011)"
_MISFITS = {misfit.name.lower(): misfit for misfit in FillMisfit}


@dataclass(frozen=True)
class DominantResourceFairness(Filling):
    """The user with the smallest dominant share starts its shortest job, on the device on which that job is fastest."""

    name: ClassVar[str] = "drf"
    paper: ClassVar[str] = f"{_DRF}; baseline of AlloX (EuroSys 2020), section 6"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    order: ClassVar[str] = "sjf"

    misfit: str = field(
        default="skip", metadata=param("when a job does not fit: skip it, pass over its user, or stop there", one_of=_MISFITS)
    )

    def demands(self, instant: Instant, ways: Ways) -> Ints:
        """The one way per job that counts as its demand: the fastest, with devices if equal."""
        return ways.fastest(instant.tier)

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        chosen = self.demands(instant, ways)
        found = baselines.drf(ways.only(chosen), instant.pool, order=self.order, misfit=_MISFITS[self.misfit], worth=instant.worth)
        return chosen[found]


@dataclass(frozen=True)
class _AsAsked(DominantResourceFairness):
    """Jobs run as they ask to and not otherwise: in the first way that is listed for them."""

    def demands(self, instant: Instant, ways: Ways) -> Ints:
        first = np.ones(len(ways.job), dtype=bool)
        first[1:] = ways.job[1:] != ways.job[:-1]
        return np.flatnonzero(first)


@dataclass(frozen=True)
class FirstComeDRF(_AsAsked):
    """DRF between users, first come first served within a user; jobs run as they ask to, without alternatives."""

    name: ClassVar[str] = "drf-fifo"
    needs: ClassVar[frozenset[str]] = frozenset()
    order: ClassVar[str] = "fifo"


@dataclass(frozen=True)
class ShortestFirstDRF(_AsAsked):
    """DRF between users, shortest first within a user; jobs run as they ask to, without alternatives."""

    name: ClassVar[str] = "drf-sjf"


@dataclass(frozen=True)
class ExtendedDRF(Filling):
    """DRF over interchangeable resources: a device counts as so many cores as jobs gain by it; devices are tried first."""

    name: ClassVar[str] = "drf-ext"
    paper: ClassVar[str] = f"{_DRF}; extended in AlloX (EuroSys 2020), section 6"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        return baselines.drf_extended(ways, instant.pool, interchangeable_compute(instant), instant.tier)


def interchangeable_compute(instant: Instant) -> Worth:
    """Devices and cores in one group, a device worth the mean of (cores x time) / (devices x time) over the jobs that compete."""
    types = instant.types
    unit = np.empty(2 * types, dtype=np.int64)  # per kind, the resource that it is about
    unit[::2], unit[1::2] = np.arange(types), np.arange(types, 2 * types)
    on_cores = np.flatnonzero(instant.ways.kind % 2)
    base = int(unit[instant.ways.kind[on_cores[0]]]) if len(on_cores) else 0
    worth = exchange_rates(instant.ways, unit, base)
    shared = interchangeable(worth, np.arange(3 * types) < 2 * types)
    return Worth(np.minimum(shared.group, 2 * types), shared.value)  # memory of all nodes counts together


@dataclass(frozen=True)
class AlloxEqualShare(Filling):
    """Every user has its part of every resource, used or not; within it devices first, shortest first (ES)."""

    name: ClassVar[str] = "es"
    paper: ClassVar[str] = "Baseline of AlloX (EuroSys 2020), section 6"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        return baselines.equal_share(ways, instant.pool, instant.tier)


@dataclass(frozen=True)
class EqualUsers(Filling):
    """Equal parts among the users who want something now, and what they cannot use goes to the user with the least (FS)."""

    name: ClassVar[str] = "fs"
    paper: ClassVar[str] = "Baseline of AlloX (EuroSys 2020), named but not built in its simulator"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        return baselines.fair_share(ways, instant.pool, instant.tier, instant.worth)
