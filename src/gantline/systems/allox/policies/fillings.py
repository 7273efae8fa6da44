"""What the baselines share: jobs in some order on the first thing that has room, decided anew at every event."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.arrays import Ints
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.systems.allox.policies.instant import Instant
from gantline.systems.allox.policies.profiling import Samples, check_profile
from gantline.systems.allox.policies.users import read_weights
from gantline.systems.allox.policies.ways import Ways


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
            chosen = instant.seat(lambda ways: self.choose(instant, ways))
        memory = None if samples is None else {"samples": samples.made}
        return instant.plan(chosen, valid_until=self.valid_until(instant), memory=memory)
