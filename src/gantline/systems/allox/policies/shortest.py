"""Shortest pair of job and device first: with or without preemption, with or without ageing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.arrays import Ints
from gantline.core.takes import about
from gantline.systems.allox.policies import baselines
from gantline.systems.allox.policies.ageing import next_ageing
from gantline.systems.allox.policies.fillings import Filling
from gantline.systems.allox.policies.instant import Instant
from gantline.systems.allox.policies.policy import PAPER
from gantline.systems.allox.policies.ways import Ways


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

    age: float = field(default=500.0, metadata=about("seconds of waiting after which a job goes first", low=0.0, unit="seconds"))

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        return baselines.allox_plus(ways, instant.pool, instant.arrival, instant.now, self.age)

    def valid_until(self, instant: Instant) -> float:
        return math.inf if math.isinf(self.age) else next_ageing(instant.arrival, instant.now, self.age)
