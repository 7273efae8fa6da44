"""Other CPUs, another part of the devices, a cap on their memory, a shift: orders to a gang that runs, and no stop and start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.probes.scenario import FOREVER, fact, job

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.engine import Engine
from gantline.engine.executor import Can, Order
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.placement.rules import find_placement
from gantline.simulator.simulate import simulate
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace


@dataclass(frozen=True)
class Later(Policy):
    """One job on the first device; from 40 s on on other terms."""

    terms: dict[str, Any] = field(default_factory=dict)

    def decide(self, snapshot: Snapshot) -> Plan:
        after = snapshot.now >= 40.0
        said = {"devices": (0,), "mode": Mode.SPACE, "fraction": 0.9, **(self.terms if after else {})}
        return Plan.assign([Assignment(0, **said)], valid_until=FOREVER if after else 40.0)


TERMS = [({"cpus": 2.0}, Can.TERMS), ({"memory_cap": 20.0}, Can.TERMS), ({"offset": 0.5}, Can.TERMS), ({"fraction": 0.5}, Can.SHARE)]


@pytest.mark.parametrize(("terms", "ability"), TERMS)
def test_other_terms_restart_nothing_on_either_clock(terms: dict[str, Any], ability: Can) -> None:
    run = simulate([job("a", 1, 90)], "1x1/8c/80d", Later(terms))

    assert (fact(run, "a", "restarts"), fact(run, "a", "preemptions")) == (0, 0)


@pytest.mark.parametrize("able", [True, False], ids=["an executor that can", "one that cannot"])
@pytest.mark.parametrize(("terms", "ability"), TERMS)
def test_an_executor_gets_the_new_terms_as_an_order_and_what_it_cannot_do_is_a_stop_and_a_start(
    terms: dict[str, Any], ability: Can, able: bool
) -> None:
    tables = load_tables(Trace.from_records([job("a", 1, 90)]), parse_cluster("1x1/8c/80d"))
    engine = Engine(State(tables, Regime(), find_placement("first-free")), Later(terms))
    executor = Noted(tables.F[Job.WORK].copy(), Faults(), able=frozenset(Can) if able else frozenset(Can) - {ability})
    Simulation(engine, until=1000.0, driver=Acknowledged(engine, executor)).run()

    assert int(tables.I[Job.RESTARTS, 0]) == (0 if able else 1)
    assert executor.breaches == []
    name, value = next(iter(terms.items()))
    assert [getattr(order.grant.assignment, name) == value for order in executor.sent if order.grant is not None][-1]


@dataclass
class Noted(FaultyExecutor):
    """Keeps the orders that it was sent."""

    sent: list[Order] = field(default_factory=list)

    def send(self, order: Order, now: float) -> None:
        self.sent.append(order)
        super().send(order, now)
