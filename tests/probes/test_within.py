"""`within`: a gang in one node, rack or pool, as a must or as a preference."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.engine.states import commit, engine_of
from tests.probes.scenario import FOREVER, job, spans

from gantline.core.cluster import Cluster, Node
from gantline.core.columns import Job
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

RACKS = "2x2@east,2x2@west"


@dataclass(frozen=True)
class Together(Policy):
    """Everybody within one place of the level."""

    level: str = "rack"
    required: bool = True

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = range(len(snapshot.jobs))
        rows = [Assignment(k, within=self.level if snapshot.jobs.gpus[k] > 1 else "", required=self.required) for k in jobs]
        return Plan.assign(rows, valid_until=FOREVER)


JOBS = [job("small", 1, 50), job("gang", 4, 100)]


def test_a_gang_that_must_stay_in_a_rack_gets_the_rack_that_has_room() -> None:
    run = simulate(JOBS, RACKS, Together())

    assert spans(run, "gang") == [(0.0, 100.0, [4, 5, 6, 7], "finished")]


@pytest.mark.parametrize(("required", "start"), [(True, 50.0), (False, 0.0)])
def test_a_preference_gives_way_and_a_must_waits(required: bool, start: float) -> None:
    jobs = [job("one", 1, 50), job("two", 4, 60), job("gang", 3, 100)]
    run = simulate([*jobs[:2], job("more", 1, 50), jobs[2]], "1x4@east,1x5@west", Together(required=required))

    assert spans(run, "gang")[0][0] == start


def test_a_must_that_fails_has_its_reason() -> None:
    engine = engine_of([job("a", 1), job("b", 1), job("gang", 4)], RACKS)
    commit(engine, [Assignment(0, nodes=(0,)), Assignment(1, nodes=(2,)), Assignment(2, within="rack", required=True)])

    assert Reason(int(engine.state.tables.I[Job.REASON, 2])) is Reason.FRAGMENTED


def test_a_running_gang_that_spans_racks_moves_when_it_must_be_together() -> None:
    engine = engine_of([job("gang", 2, 100)], RACKS)
    commit(engine, [Assignment(0, devices=(0, 4))])
    commit(engine, [Assignment(0, within="rack", required=False)], at=10.0)
    assert engine.grants.devices(0) == (0, 4)  # a preference moves no gang
    commit(engine, [Assignment(0, within="rack", required=True)], at=20.0)

    assert engine.grants.devices(0) == (0, 1)


def test_pools_are_places_too() -> None:
    cluster = Cluster((Node("a", gpus=1, pool="own"), Node("b", gpus=2, pool="lent"), Node("c", gpus=2, pool="lent")))
    engine = engine_of([job("gang", 4)], cluster)
    commit(engine, [Assignment(0, within="pool", required=True)])

    assert engine.grants.devices(0) == (1, 2, 3, 4)


def test_one_node_or_none() -> None:
    engine = engine_of([job("gang", 3)], RACKS)
    commit(engine, [Assignment(0, within="node", required=True)])
    assert engine.grants.devices(0) == ()
    commit(engine, [Assignment(0, within="node")])
    assert engine.grants.devices(0) == (0, 1, 2)
