"""Equal shares: a fixed part of every resource for each user, or one among users with jobs now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gantline.core.arrays import Ints
from gantline.systems.allox.policies import baselines
from gantline.systems.allox.policies.fillings import Filling
from gantline.systems.allox.policies.instant import Instant
from gantline.systems.allox.policies.ways import Ways


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
