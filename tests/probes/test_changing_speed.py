"""A speed that changes by itself: after some epochs a job runs with another batch size (Accordion in Shockwave, NSDI 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, job, spans

from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class Regimes(PerformanceModel):
    """From forty units of work on, every job is twice as fast."""

    def granted(self, gang: Gang) -> tuple[float, float]:
        late = gang.done >= 40.0 - 1e-9
        rate = (2.0 if late else 1.0) / (1 + len(gang.mates))
        return rate, math.inf if late else gang.since + (40.0 - gang.done) / rate


@dataclass(frozen=True)
class Together(Policy):
    """All jobs on one device, if there are several."""

    def decide(self, snapshot: Snapshot) -> Plan:
        rows = [Assignment(k, batch=32, group=0, mode=Mode.SPACE) for k in range(len(snapshot.jobs))]
        return Plan.assign(rows, valid_until=FOREVER)


@pytest.mark.parametrize("round_length", [None, 60.0])
def test_the_change_comes_at_its_instant_between_decisions(round_length: float | None) -> None:
    run = simulate([job("a", 1, 100)], "1x1", Together(), performance=Regimes(), round=round_length)

    assert spans(run, "a") == [(0.0, pytest.approx(40.0 + 30.0), [0], "finished")]
