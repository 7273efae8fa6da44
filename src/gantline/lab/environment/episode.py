"""One workload, decision by decision: a simulation that pauses before each, and the state of its jobs so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.assembly.finders import find
from gantline.engine.assembly.from_trace import assemble
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.drivers.simulation import Simulation
from gantline.simulator.objective import Ended
from gantline.traces.trace import Trace

_LOST = (int(Phase.FAILED), int(Phase.REJECTED), int(Phase.CANCELLED))


@dataclass(frozen=True)
class DecidedOutside(Policy):
    """A policy that is given its answers from outside."""

    answer: Callable[[Snapshot], Plan] = lambda snapshot: Plan()
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def decide(self, snapshot: Snapshot) -> Plan:
        return self.answer(snapshot)


@dataclass(frozen=True)
class OrderedOutside(DecidedOutside):
    """The same, for answers that are orders: not called while no job waits."""

    ranks: ClassVar[bool] = True

    def only_starts(self) -> bool:
        return True


class Episode:
    """A run decided from outside."""

    def __init__(self, trace: Trace, cluster: Cluster, spec: RunSpec, ranks: bool) -> None:
        policy = (OrderedOutside if ranks else DecidedOutside)(self._answered)
        self.simulation = _simulation(trace, cluster, spec, policy)
        self._questions = self.simulation.steps()
        self._plan = Plan()

    def advance(self) -> bool:
        """Go on to the next question; whether there is one."""
        for _ in self._questions:
            return True
        self.simulation.engine.grants.close_open_intervals()
        return False

    def snapshot(self) -> Snapshot:
        """What the question is about."""
        return self.simulation.state.snapshot()

    def answer(self, plan: Plan) -> bool:
        """Decide, and go on to the next question; whether there is one."""
        self._plan = plan
        return self.advance()

    @property
    def lost(self) -> str:
        """Why an answer was not taken, if one was not."""
        incidents = self.simulation.engine.incidents
        return str(incidents[0]) if incidents else ""

    def ended(self) -> Ended:
        """The jobs as they have ended by now."""
        return ended_by_now(self.simulation)

    def _answered(self, snapshot: Snapshot) -> Plan:
        return self._plan


def played(trace: Trace, cluster: Cluster, spec: RunSpec, policy: Policy) -> Ended:
    """The jobs as they end under a policy."""
    simulation = _simulation(trace, cluster, spec, policy)
    simulation.run()
    return ended_by_now(simulation)


def ended_by_now(simulation: Simulation) -> Ended:
    """The jobs of a run as far as it has come; those that have yet to arrive have not waited."""
    tables, n = simulation.state.tables, simulation.state.tables.count
    F, I = tables.F[:, :n], tables.I[:, :n]
    return Ended(
        arrival=F[Job.ARRIVAL],
        first_start=F[Job.MARK],
        finish=F[Job.FINISH],
        duration=F[Job.WORK],
        gpus=I[Job.GPUS].astype(np.float64),
        end=simulation.state.now,
        devices=float(tables.cluster.gpus),
        deadline=F[Job.DEADLINE],
        lost=np.isin(I[Job.PHASE], _LOST),
    )


def _simulation(trace: Trace, cluster: Cluster, spec: RunSpec, policy: Policy) -> Simulation:
    rules = RunRules.of(spec, cluster)
    run = assemble(trace, cluster, policy, spec, rules)
    events = tuple(sorted(find(spec, "node_events", cluster), key=lambda event: event.time))
    return Simulation(run.engine, rules.admission, rules.estimates, spec.until, None, events, latency=spec.latency)
