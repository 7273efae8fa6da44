"""A packed pair of unequal sizes: a job on two devices shares one of them with a smaller one; speeds come from a performance model."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, job

from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class PackAll(Policy):
    """Everybody in one group, as Gandiva packs when jobs outnumber devices."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, group=0, mode=Mode.SPACE) for k in range(len(snapshot.jobs))], valid_until=FOREVER)


JOBS = [job("wide", 2, 120, model="vision"), job("slim", 1, 60, model="language")]


def test_a_device_that_two_jobs_share_is_busy_once() -> None:
    run = simulate(JOBS, "1x2", PackAll())

    assert run.summary["utilization"] == pytest.approx(1.0)
