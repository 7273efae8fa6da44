"""Dominant resource fairness over CPUs, GPUs and memory, in the four forms that AlloX is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.takes import about
from gantline.systems.allox.policies import baselines
from gantline.systems.allox.policies.fill import FillMisfit
from gantline.systems.allox.policies.fillings import Filling
from gantline.systems.allox.policies.instant import Instant
from gantline.systems.allox.policies.shares import Worth, exchange_rates, interchangeable
from gantline.systems.allox.policies.ways import Ways

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
        default="skip", metadata=about("when a job does not fit: skip it, pass over its user, or stop there", one_of=_MISFITS)
    )

    def demands(self, instant: Instant, ways: Ways) -> Ints:
        """The one way per job that counts as its demand: the fastest, with devices if equal."""
        return np.flatnonzero(ways.fastest(instant.tier))

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
