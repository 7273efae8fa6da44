"""Policies that are equal: jobs in a random order, a different one for every salt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot

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
