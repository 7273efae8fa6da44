"""First come, first served, with the four usual ways to fill the gaps.

Backfilling follows Lifka (IBM SP, JSSPP 1995) for EASY and Mu'alem and Feitelson (IEEE TPDS 2001) for the conservative kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.constraints import param
from gantline.core.plan import Misfit, Plan
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.policies.backfill import backfill

_WAYS = ("none", "skip", "shrink", "easy", "conservative")
_PROMISES = {"easy": 1.0, "conservative": math.inf}


@dataclass(frozen=True)
class Fifo(OrderPolicy):
    """Jobs start in order of arrival and are never stopped."""

    name: ClassVar[str] = "fifo"
    paper: ClassVar[str] = "Lifka: The ANL/IBM SP Scheduling System (JSSPP 1995); Mu'alem, Feitelson (IEEE TPDS 2001)"
    preempt: ClassVar[bool] = False

    backfill: str = field(
        default="none",
        metadata=param(
            "what may pass a job that does not fit: 'none', 'skip' (any that fits), 'shrink' (any, but it may start with a "
            "smaller option of its own), 'easy' (any that does not delay the first), "
            "'conservative' (any that delays none); the last two need estimates",
            one_of=_WAYS,
        ),
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"remaining"}) if self.backfill in {"easy", "conservative"} else frozenset()

    @property
    def misfit(self) -> Misfit:  # type: ignore[override]
        return {"none": Misfit.STOP, "shrink": Misfit.SHRINK}.get(self.backfill, Misfit.SKIP)

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        return snapshot.jobs.arrival

    def by_key(self) -> bool:
        return True

    def backfill_depth(self) -> float:
        return _PROMISES.get(self.backfill, 0.0)

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf

    def decide(self, snapshot: Snapshot) -> Plan:
        depth = self.backfill_depth()
        return backfill(snapshot, snapshot.jobs.arrival, depth) if depth else super().decide(snapshot)
