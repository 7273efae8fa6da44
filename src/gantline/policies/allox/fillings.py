"""What the baselines share: jobs in some order on the first thing that has room, decided anew at every event."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.allox.instant import Instant
from gantline.policies.allox.users import read_weights
from gantline.policies.allox.ways import Ints, Ways


@dataclass(frozen=True)
class Filling(Policy):
    """A baseline: `choose` says which ways start, in order. Whoever runs stays, unless the policy is preemptive."""

    preemptive: ClassVar[bool] = False

    weights: tuple[str, ...] = field(default=(), metadata={"help": "how much users count: alice=2,bob=1 (else the weight of their jobs)"})

    def __post_init__(self) -> None:
        read_weights(self.weights)

    def choose(self, instant: Instant, ways: Ways) -> Ints:
        """Rows of ``ways`` that start."""
        raise TypeError(f"policy '{type(self).__name__}' has no choose()")

    def valid_until(self, instant: Instant) -> float | None:
        """When the answer may change by itself: never, where nobody who runs competes and nobody ages."""
        return None if self.preemptive else math.inf

    def only_starts(self) -> bool:
        return not self.preemptive

    def decide(self, snapshot: Snapshot) -> Plan:
        instant = Instant(snapshot, read_weights(self.weights), everyone=self.preemptive)
        chosen = instant.ways.job[:0]
        if len(instant.ways.job):
            chosen = instant.seat(lambda ways: self.choose(instant, ways))
        return instant.plan(chosen, valid_until=self.valid_until(instant))
