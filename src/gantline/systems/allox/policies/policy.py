"""`allox`: which job runs where, by a least-cost matching of jobs to machines and positions (AlloX, EuroSys 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.constraints import param
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.systems.allox.policies.baselines import Ways
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

        chosen = instant.seat(match)
        return chosen, state if len(instant.competing) >= _WORTH_KEEPING else None, steady and tries == 1
