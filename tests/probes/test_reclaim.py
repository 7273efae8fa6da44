"""Lyra: servers on loan go back; the choice that stops fewest jobs is the two servers of one job (Li et al., EuroSys 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.cluster import Cluster, Node
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

POOLS = Cluster(
    (
        Node("own", gpus=2, pool="training"),
        *(Node(f"lent{k}", gpus=2, pool="inference") for k in range(4)),
    )
)


@dataclass(frozen=True)
class Reclaim(Policy):
    """At a given time so many servers of the inference pool go back, cheapest first: a job costs 1 / (servers it is on) on each."""

    at: float = 50.0
    count: int = 2
    stop: bool = True  # stop who is there; else they finish in peace

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        on_nodes = {k: {int(cluster.device_node[d]) for d in jobs.devices(k)} for k in range(len(jobs))}
        leaving: set[int] = set()
        if snapshot.now >= self.at:
            lent = {n for n, node in enumerate(cluster.description.nodes) if node.pool == "inference"}
            leaving = {n for n in lent if not cluster.node_up[n]}
            while len(leaving) < self.count:
                left = {k: on - leaving for k, on in on_nodes.items() if on and not on & leaving}
                cost = {n: sum(1 / len(on) for on in left.values() if n in on) for n in lent - leaving}
                leaving.add(min(cost, key=lambda n: (cost[n], n)))
        stays = [k for k, on in on_nodes.items() if on and not (self.stop and on & leaving)]
        waits = [k for k in on_nodes if k not in stays]
        rows = [Assignment(k, devices=jobs.devices(k)) for k in stays]
        rows += [Assignment(k) for k in waits] if snapshot.cluster.free else []
        return Plan.assign(rows, release=tuple(sorted(leaving)), valid_until=self.at if snapshot.now < self.at else FOREVER)


JOBS = [job("home", 2, 90), job("one", 2, 80), job("two", 2, 200), job("wide", 4, 100)]


def test_the_two_servers_of_one_job_go_back_and_only_that_job_is_stopped() -> None:
    run = simulate(JOBS, POOLS, Reclaim(), costs="resume=10")

    assert spans(run, "wide")[0] == (0.0, 50.0, [6, 7, 8, 9], "preempted")
    assert [spans(run, name)[0][3] for name in ("home", "one", "two")] == ["finished"] * 3
    assert spans(run, "wide")[1][0] == 90.0  # own and lent0 are free then: four GPUs
    assert spans(run, "wide")[1][2] == [0, 1, 2, 3]
    assert fact(run, "wide", "finish") == pytest.approx(90.0 + 10.0 + 50.0)
