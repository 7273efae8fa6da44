"""Parameter servers plus workers: one grant with two roles, on CPU nodes and GPU nodes (Optimus, Peng et al., EuroSys 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Part, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate

GPU, CPU = 0, 1
CLUSTER = "gpu:2x2/4c,cpu:2x0/8c"


@dataclass(frozen=True)
class ServersAndWorkers(PerformanceModel):
    """Optimus' synchronous speed, f(p, w) = w / (1 + w / p), relative to one of each."""

    def granted(self, gang: Gang) -> float:
        assert gang.grant is not None
        p, w = (sum(worker.role == role for worker in gang.grant.workers) for role in ("ps", "worker"))
        return w / (1 + w / p) / 0.5


@dataclass(frozen=True)
class Optimus(Policy):
    """(servers, workers) from each time on."""

    steps: tuple[tuple[float, int, int], ...] = ((0.0, 1, 2),)

    def decide(self, snapshot: Snapshot) -> Plan:
        _, servers, workers = [step for step in self.steps if step[0] <= snapshot.now][-1]
        later = min((step[0] for step in self.steps if step[0] > snapshot.now), default=FOREVER)
        parts = (Part("ps", CPU, servers, gpus=0, cpus=4.0), Part("worker", GPU, workers, cpus=1.0))
        return Plan.assign([Assignment(k, parts=parts) for k in range(len(snapshot.jobs))], valid_until=later)


def test_servers_sit_on_cpu_nodes_and_workers_on_gpus() -> None:
    run = simulate([job("mx", 1, 120)], CLUSTER, Optimus(), performance=ServersAndWorkers())

    assert spans(run, "mx") == [(0.0, pytest.approx(90.0), [0, 1], "finished")]  # 2 / (1 + 2) / 0.5 = 4/3


def test_a_server_and_a_worker_more_leave_the_others_where_they_are() -> None:
    policy = Optimus(((0.0, 1, 2), (30.0, 3, 3), (60.0, 3, 1)))
    run = simulate([job("mx", 1, 200)], CLUSTER, policy, performance=ServersAndWorkers(), costs="resize=5,resume=60")

    assert [(start, devices, why) for start, _, devices, why in spans(run, "mx")] == [
        (0.0, [0, 1], "resized"),
        (30.0, [0, 1, 2], "resized"),
        (60.0, [0], "finished"),
    ]
    assert fact(run, "mx", "restarts") == 0
    done = 30 * 4 / 3 + 25 * 3 / 2 / 0.5
    assert fact(run, "mx", "finish") == pytest.approx(65.0 + (200 - done) / (1 / (1 + 1 / 3) / 0.5))


def test_a_grant_is_whole_or_nothing() -> None:
    run = simulate([job("mx", 1, 100)], CLUSTER, Optimus(((0.0, 5, 1), (40.0, 4, 1))), performance=ServersAndWorkers())

    assert fact(run, "mx", "first_start") == 40.0  # sixteen CPUs carry four servers of four


def test_losing_the_node_of_a_server_stops_the_whole_grant() -> None:
    events = [NodeEvent(10.0, "node2", "down")]
    run = simulate([job("mx", 1, 100)], CLUSTER, Optimus(), performance=ServersAndWorkers(), node_events=events, costs="checkpoint=1000")

    assert spans(run, "mx")[0] == (0.0, 10.0, [0, 1], "node-lost")
    assert fact(run, "mx", "work_lost") == pytest.approx(10 * 4 / 3)
    assert fact(run, "mx", "finish") == pytest.approx(10.0 + 75.0)  # again from the start, its server on the other node
