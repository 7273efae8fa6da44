"""AlloX: a job may run on a CPU node or on a GPU; which one is a row of its options (Le et al., EuroSys 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

CLUSTER = "gpu:1x1/4c,cpu:1x0/20c"
WAYS = "gpu:1/4={gpu}|cpu:0/8={cpu}"


@dataclass(frozen=True)
class Match(Policy):
    """Who runs stays; the others are matched to free places so that the sum of their run times is least."""

    pin: bool = False  # name the CPU node, as a policy that places itself would

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        granted = [Assignment(k, int(jobs.option[k])) for k in np.flatnonzero(jobs.running)]
        waiting = np.flatnonzero(~jobs.running).tolist()
        places = [0] * cluster.free + [1] * int(cluster.node_cpus_free[1] // 8)  # option 0 on a GPU, option 1 on eight CPUs
        if waiting and places:
            cost = np.array([[jobs.remaining[k] / jobs.options(k)[place].rate for place in places] for k in waiting])
            for who, where in zip(*linear_sum_assignment(cost)):
                nodes = (1,) if self.pin and places[where] == 1 else ()
                granted.append(Assignment(waiting[who], places[where], nodes=nodes))
        return Plan.assign(granted, valid_until=FOREVER)


@pytest.mark.parametrize("pin", [False, True], ids=["compiled path", "general path"])
def test_the_job_that_gains_most_gets_the_gpu_and_the_others_run_on_cpus(pin: bool) -> None:
    jobs = [
        job("even", work=100, options=WAYS.format(gpu=100, cpu=150)),
        job("keen", work=100, options=WAYS.format(gpu=100, cpu=900)),
        job("third", work=100, options=WAYS.format(gpu=100, cpu=400)),
        job("late", work=100, options=WAYS.format(gpu=100, cpu=120), at=10.0),
    ]
    run = simulate(jobs, CLUSTER, Match(pin=pin))

    assert spans(run, "keen") == [(0.0, 100.0, [0], "finished")]
    assert spans(run, "even") == [(0.0, 150.0, [], "finished")]
    nodes = dict(zip(run.allocations["job"], run.allocations["nodes"].to_list()))
    assert nodes == {"keen": [0], "even": [1], "third": [1], "late": [0]}
    assert fact(run, "third", "finish") == pytest.approx(400.0)
    assert fact(run, "late", "first_start") == pytest.approx(100.0)  # twenty CPUs are two places of eight; it waits for the GPU


def test_cpus_that_are_not_there_are_not_given() -> None:
    @dataclass(frozen=True)
    class AllOnCpus(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(k, 1, nodes=(1,)) for k in range(len(snapshot.jobs))], valid_until=FOREVER)

    run = simulate([job(f"j{k}", work=50, options=WAYS.format(gpu=50, cpu=100)) for k in range(3)], CLUSTER, AllOnCpus())

    assert sorted(run.jobs["first_start"].to_list()) == [0.0, 0.0, 100.0]
