"""What changes of a grant cost: seconds at rate zero, each kind its own."""

from __future__ import annotations

import pytest
from tests.engine.states import commit, engine_of
from tests.jobs import job_row
from tests.probes.scenario import Says

from gantline.core.columns import Job
from gantline.core.facts import Costs
from gantline.core.plan import Assignment, Mode, Part
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.placement.rules import find_placement
from gantline.traces.files.clusters import read_cluster
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace

COSTS = Costs(start=1.0, resume=2.0, resize=4.0, move=8.0)
JOB = [{"job": "a", "arrival": 0.0, "gpus": 2, "duration": 1000.0, "options": "a:2=1000|b:2=500"}]
CLUSTER = "a:2x4/8c,b:1x4/8c"
BEFORE = Assignment(0, devices=(0, 1))

CHANGES: dict[str, tuple[Assignment | None, float]] = {
    "the same again": (BEFORE, 0.0),
    "a lease": (Assignment(0, devices=(0, 1), until=500.0), 0.0),
    "more CPUs": (Assignment(0, devices=(0, 1), cpus=4.0), 0.0),
    "another batch": (Assignment(0, devices=(0, 1), batch=64), 0.0),
    "company": (Assignment(0, devices=(0, 1), group=0, mode=Mode.SPACE), 0.0),
    "one more device": (Assignment(0, devices=(0, 1, 2)), 4.0),
    "one device less": (Assignment(0, gpus=1), 4.0),
    "one worker elsewhere": (Assignment(0, devices=(0, 5)), 8.0),
    "other ranks": (Assignment(0, devices=(1, 0)), 8.0),
    "all elsewhere": (Assignment(0, devices=(4, 5)), 8.0),
    "another type": (Assignment(0, 1), 8.0),
    "elsewhere and larger": (Assignment(0, gpus=3, nodes=(1,)), 4.0),
    "several roles": (Assignment(0, parts=(Part("worker", 0, 2),)), 8.0),
}


@pytest.mark.parametrize(("after", "price"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_costs_what_its_kind_costs(after: Assignment, price: float) -> None:
    engine = engine_of(JOB, CLUSTER, costs=COSTS)
    commit(engine, [BEFORE])
    F = engine.state.tables.F
    assert F[Job.SINCE, 0] == 1.0  # a first start
    commit(engine, [after], at=100.0)

    paused = max(0.0, float(F[Job.SINCE, 0]) - 100.0)
    assert paused == price
    assert F[Job.DONE, 0] + F[Job.RATE, 0] * (100.0 - F[Job.SINCE, 0]) * (paused == 0.0) == pytest.approx(99.0)


def test_a_stop_is_saved_and_a_resume_is_paid() -> None:
    engine = engine_of(JOB, CLUSTER, costs=COSTS)
    commit(engine, [BEFORE])
    commit(engine, [], at=100.0)
    commit(engine, [BEFORE], at=200.0)

    assert engine.state.tables.F[Job.SINCE, 0] == 202.0
    assert engine.state.tables.F[Job.SAFE, 0] == pytest.approx(99.0)


def test_stopping_takes_time_where_an_executor_takes_time() -> None:
    newest = Says(lambda snapshot: [Assignment(len(snapshot.jobs) - 1)] if len(snapshot.jobs) else [])
    jobs = [job_row("old"), job_row("new", 1, 50.0, at=40.0)]
    tables = load_tables(Trace.from_records(jobs), read_cluster("1x1"))
    state = State(tables, Regime(), find_placement("first-free"))
    engine, executor = Engine(state, newest), FaultyExecutor(tables.F[Job.WORK], Faults(stop=(30.0, 30.0)))
    Simulation(engine, driver=Acknowledged(engine, executor)).run()

    assert tables.F[Job.FINISH].tolist() == pytest.approx([150.0, 120.0])  # it worked on while it was saving: 70 done by 70 s
