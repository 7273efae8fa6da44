"""A Sia configuration: type, nodes, count, with a batch size that the performance model knows (Jayaram Subramanya et al., SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.engine.states import state_of
from tests.probes.scenario import FOREVER, job

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Device, Job
from gantline.core.options import Option, OptionTable
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.engine import Engine
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace

T4, A100 = 0, 1


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
    tables.I[Job.OPTION_COUNT, 0] = 2
    state = state_of(tables)
    engine = Engine(state, Ask(option))
    plan: Any = engine.decide()
    engine.commit(plan)

    devices = engine.grants.devices(0)
    assert np.unique(tables.D[Device.NODE, list(devices)], return_counts=True)[1].tolist() == per_node
    assert state.snapshot().jobs.grant(0).assignment.batch == 64  # type: ignore[union-attr]
