"""AlloX: a job may run on a CPU node or on a GPU; which one is a row of its options (Le et al., EuroSys 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.scenario import FOREVER, job

from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

CLUSTER = "gpu:1x1/4c,cpu:1x0/20c"
WAYS = "gpu:1/4={gpu}|cpu:0/8={cpu}"


def test_cpus_that_are_not_there_are_not_given() -> None:
    @dataclass(frozen=True)
    class AllOnCpus(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(k, 1, nodes=(1,)) for k in range(len(snapshot.jobs))], valid_until=FOREVER)

    run = simulate([job(f"j{k}", work=50, options=WAYS.format(gpu=50, cpu=100)) for k in range(3)], CLUSTER, AllOnCpus())

    assert sorted(run.jobs["first_start"].to_list()) == [0.0, 0.0, 100.0]
