"""Synergy: a running job gives CPUs up to a neighbour without a restart, and gets them back (Mohan et al., OSDI 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class HungryForCpus(PerformanceModel):
    """Speed is proportional to CPUs, up to six."""

    def granted(self, gang: Gang) -> float:
        assert gang.grant is not None
        return min(gang.grant.assignment.cpus, 6.0) / 6.0


@dataclass(frozen=True)
class Tune(Policy):
    """Everybody gets its demand if it fits, else all are shrunk to the proportional share of the node's CPUs."""

    newcomers_first: bool = False

    def decide(self, snapshot: Snapshot) -> Plan:
        count = len(snapshot.jobs)
        cpus = 6.0 if 6.0 * count <= 8.0 else 8.0 / 2
        order = reversed(range(count)) if self.newcomers_first else range(count)
        return Plan.assign([Assignment(k, cpus=cpus) for k in order], valid_until=FOREVER)


JOBS = [job("old", 1, 100, cpus=6.0), job("new", 1, 40, at=50.0, cpus=6.0)]


@pytest.mark.parametrize("newcomers_first", [False, True])
def test_the_old_job_shrinks_for_the_new_one_and_grows_again(newcomers_first: bool) -> None:
    run = simulate(JOBS, "1x2/8c", Tune(newcomers_first), performance=HungryForCpus(), costs="resume=60,move=60,resize=60")

    assert spans(run, "new") == [(50.0, pytest.approx(110.0), [1], "finished")]
    assert spans(run, "old") == [(0.0, pytest.approx(120.0), [0], "finished")]  # 50, then 40 at two thirds, then 10
    assert fact(run, "old", "restarts") == 0
