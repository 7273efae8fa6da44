"""A Sia configuration: type, nodes, count, with a batch size that the performance model knows (Jayaram Subramanya et al., SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.engine.states import state_of
from tests.probes.scenario import FOREVER, job, spans

from gantline.assembly.load import load_tables
from gantline.core import columns as c
from gantline.core.cluster_spec import parse_cluster
from gantline.core.options import Option, OptionTable
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.engine import Engine
from gantline.performance.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate
from gantline.workload.trace import Trace

T4, A100 = 0, 1
CLUSTER = "t4:2x4,a100:1x8"


@dataclass(frozen=True)
class Goodput(PerformanceModel):
    """Twice as fast on an a100; every doubling of the batch beyond 32 per device loses a tenth."""

    def rate(self, job: str, kind: int, gpus: int) -> float:
        return gpus * (2.0 if kind == A100 else 1.0)

    def granted(self, gang: Gang) -> float:
        assert gang.grant is not None
        batch = gang.grant.assignment.batch
        return float(self.rate("", gang.type, gang.gpus) * 0.9 ** np.log2(batch / (32 * gang.gpus)))


@dataclass(frozen=True)
class Doubling(Policy):
    """One GPU first, at most twice as many each round, then the better type: what Sia does with a job it does not know yet."""

    def decide(self, snapshot: Snapshot) -> Plan:
        held = int(snapshot.jobs.held[0])
        ways = {0: (T4, 1, 32), 1: (T4, 2, 64), 2: (T4, 8, 1024)}  # eight on two whole nodes, with four times the usual batch
        kind, gpus, batch = ways.get(held, (A100, 8, 256))
        nodes = (0, 1) if kind == T4 and gpus == 8 else ()
        return Plan.assign([Assignment(0, type=kind, gpus=gpus, nodes=nodes, batch=batch)])


def test_a_job_climbs_through_configurations_with_the_goodput_of_its_batch() -> None:
    run = simulate([job("bert", 1, 1000, type="t4")], CLUSTER, Doubling(), round=60.0, performance=Goodput())

    rates = [1.0, 2.0, 8 * 0.81, 16.0]
    assert [(start, devices) for start, _, devices, _ in spans(run, "bert")] == [
        (0.0, [0]),
        (60.0, [0, 1]),
        (120.0, list(range(8))),
        (180.0, list(range(8, 16))),
    ]
    assert run.allocations["type"].to_list() == ["t4", "t4", "t4", "a100"]
    assert run.jobs["finish"][0] == pytest.approx(180.0 + (1000 - 60 * sum(rates[:3])) / 16.0)


@dataclass(frozen=True)
class Ask(Policy):
    """Asks for one option of the first job."""

    option: int = 0

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(0, self.option, batch=64, within="rack")], valid_until=FOREVER)


@pytest.mark.parametrize(("option", "per_node"), [(0, [4]), (1, [2, 2])])
def test_the_number_of_nodes_is_part_of_the_configuration(option: int, per_node: list[int]) -> None:
    tables = load_tables(Trace.from_records([job("gpt", 4)]), parse_cluster("3x4"))
    tables.options = OptionTable.build([Option(0, 4, nodes=1), Option(0, 4, rate=0.8, nodes=2)])
    tables.I[c.OPTION_COUNT, 0] = 2
    state = state_of(tables)
    engine = Engine(state, Ask(option))
    plan: Any = engine.decide()
    engine.commit(plan)

    devices = engine.grants.devices(0)
    assert np.unique(tables.D[c.D_NODE, list(devices)], return_counts=True)[1].tolist() == per_node
    assert state.snapshot().jobs.grant(0).assignment.batch == 64  # type: ignore[union-attr]
