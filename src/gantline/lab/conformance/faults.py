"""Stories on an executor with late, lost and duplicated messages, and on machines that fail.

A policy then sees what it never sees in a plain simulation: gangs that take time to start and stop, plans that came too late, grants
that were refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.columns import Job
from gantline.core.facts import Facts
from gantline.core.grid import PowerGrid
from gantline.core.node_events import NodeEvent
from gantline.core.policy import Policy
from gantline.engine.assembly.rules import RunRules
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faults import Faults
from gantline.engine.drivers.faulty import FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.lab.conformance.scenarios import CARBON, some_jobs
from gantline.traces.files.clusters import read_cluster
from gantline.traces.trace import Trace

_FAULTS = Faults(delay=(0.0, 4.0), loss=0.1, doubled=0.1, start=(1.0, 20.0), stop=(0.0, 10.0), checkpoint=60.0)
_BREAKDOWNS = tuple(NodeEvent(at, node, kind) for at, node, kind in (
    (200.0, "node0", "down"), (350.0, "node0", "up"), (500.0, "node2", "down"), (700.0, "node2", "up"),
))  # fmt: skip
_LONG = 1e5  # seconds after which a story counts as stuck


@dataclass(frozen=True)
class Ending:
    """How a faulty story ended."""

    incidents: tuple[str, ...]
    unfinished: tuple[str, ...]


def run_faulty_story(policy: Policy, seed: int, performance: object = None, budget: float | None = None) -> Ending:
    """Run eight jobs on four nodes that fail, with unreliable messages."""
    rules = RunRules(facts=Facts(latency=3.0, grid=PowerGrid(carbon=CARBON)), seed=seed, budget=budget)
    tables = rules.load(Trace.from_records(some_jobs(f"faults {seed}")), read_cluster("4x4"))
    tables.performance = performance
    guard = rules.guard(policy)
    engine = rules.engine(rules.state(tables), rules.policy(policy, guard), guard)
    executor = FaultyExecutor(tables.F[Job.WORK].copy(), _FAULTS, seed)
    driver = Acknowledged(engine, executor)
    Simulation(engine, latency=rules.facts.latency, node_events=_BREAKDOWNS, until=_LONG, driver=driver).run()
    left = np.flatnonzero(np.isnan(tables.F[Job.FINISH]))
    return Ending(tuple(str(incident) for incident in engine.incidents), tuple(tables.ids[row] for row in left))
