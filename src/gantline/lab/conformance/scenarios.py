"""Small scenarios that every policy runs through: rounds and events, failures, late decisions, gangs, equal jobs.

Each is a function of its name alone: the same jobs every time, on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from gantline._alarm import TimeOverError
from gantline.core import memory as memories
from gantline.core.columns import Job as JobColumn
from gantline.core.errors import GantlineError
from gantline.core.facts import Costs, Facts, PowerGrid, Signal
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.rng import stream
from gantline.core.snapshot import Jobs, Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.policy_failures import describe_error
from gantline.traces.files.clusters import read_cluster
from gantline.traces.trace import Trace

Job = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A trace, a cluster and how they are simulated."""

    name: str
    jobs: tuple[Job, ...]
    cluster: str = "4x4"
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def trace(self) -> Trace:
        return Trace.from_records(self.jobs, self.name)

    @property
    def skips(self) -> bool:
        """Whether there are rounds to skip."""
        return bool(self.options.get("round"))


def some_jobs(name: str, count: int = 8, largest: int = 8, types: tuple[str, ...] = ()) -> tuple[Job, ...]:
    """Jobs drawn by name: sizes are powers of two, lengths from seconds to twenty minutes, a few users and queues."""
    draw = stream(0, 0, f"conformance/{name}")
    arrivals = sorted((draw.random(count) * 500.0).round(1).tolist())
    jobs = []
    for number, arrival in enumerate(arrivals):
        gpus = min(largest, int(2 ** draw.integers(0, 4)))
        duration = round(10.0 + 1200.0 * float(draw.random()) ** 3, 1)
        job = {"job": f"{name}-{number}", "arrival": arrival, "gpus": gpus, "duration": duration}
        job |= {"user": f"user{draw.integers(3)}", "queue": ("research", "production")[int(draw.integers(2))]}
        job |= {"model": ("resnet50", "vgg16", "lstm")[int(draw.integers(3))], "min_gpus": max(1, gpus // 2), "max_gpus": gpus * 2}
        job |= {"deadline": arrival + duration * (2.0 + 6.0 * float(draw.random()))}
        if types:
            job["type"] = types[int(draw.integers(len(types)))]
        jobs.append(job)
    return tuple(jobs)


def equal_jobs(count: int = 9) -> tuple[Job, ...]:
    """Jobs that differ in nothing but their names, all there at the beginning."""
    return tuple({"job": f"equal-{number}", "arrival": 0.0, "gpus": 2, "duration": 120.0} for number in range(count))


def ranged_jobs() -> tuple[Job, ...]:
    """Jobs that name a range and list no sizes, as `gantline submit --gpus 1:3` does, beside one of a single size."""
    ranges = ((0.0, 1, 1, 3, 400.0), (20.0, 2, 2, 2, 90.0), (50.0, 2, 1, 4, 300.0), (55.0, 3, 2, 3, 60.0), (300.0, 1, 1, 2, 30.0))
    names = ("arrival", "gpus", "min_gpus", "max_gpus", "duration")
    return tuple({"job": f"range-{number}", **dict(zip(names, job))} for number, job in enumerate(ranges))


def _failures() -> tuple[NodeEvent, ...]:
    return (
        NodeEvent(200.0, "node0", "down"),
        NodeEvent(300.0, "node2", "drain"),
        NodeEvent(420.0, "node0", "up"),
        NodeEvent(560.0, "node2", "up"),
        NodeEvent(640.0, "node1", "down"),
        NodeEvent(900.0, "node1", "up"),
    )


CARBON = Signal((300.0, 120.0, 80.0, 260.0), step=200.0)
"""The grid of all scenarios, for policies that look at it."""
CARBON_WRITTEN = {"step": CARBON.step, "values": list(CARBON.values)}
"""The same in the document of a snapshot."""


@cache
def scenarios() -> tuple[Scenario, ...]:
    """All scenarios."""
    slow, prompt = Costs(start=5, resume=15, checkpoint=90), Costs(resume=10, checkpoint=60)
    typed = some_jobs("types", types=("v100", "k80"))
    gang = ({"job": "whole", "arrival": 30.0, "gpus": 16, "duration": 100.0},)
    return (
        Scenario("rounds", some_jobs("rounds"), options={"round": 60.0}),
        Scenario("events", some_jobs("events")),
        Scenario("two types", typed, "v100:2x8,k80:2x8", {"round": 45.0, "placement": "consolidated"}),
        Scenario("failures", some_jobs("outages"), options={"round": 60.0, "node_events": _failures(), "costs": slow}),
        Scenario("failures on events", some_jobs("failing"), options={"node_events": _failures(), "costs": prompt}),
        Scenario("late decisions", some_jobs("late"), options={"round": 60.0, "latency": 7.0}),
        Scenario("wrong estimates", some_jobs("wrong"), options={"round": 60.0, "estimates": "noisy:1.0", "seed": 3}),
        Scenario("one job", some_jobs("one", 1), options={"round": 60.0}),
        Scenario("a gang as large as the cluster", tuple(sorted((*some_jobs("gang", 8), *gang), key=lambda job: float(job["arrival"])))),
        Scenario("equals", equal_jobs(), "2x4", {"round": 30.0}),
        Scenario("ranges", ranged_jobs(), "1x4", {"costs": Costs(start=2, resume=10, resize=5)}),
    )  # fmt: skip


# Scenarios on an executor with late, lost and duplicated messages, and on machines that fail.
#
# A policy then sees what it never sees in a plain simulation: gangs that take time to start and stop, plans that came too late, grants
# that were refused.

_FAULTS = Faults(delay=(0.0, 4.0), loss=0.1, doubled=0.1, start=(1.0, 20.0), stop=(0.0, 10.0), checkpoint=60.0)
_BREAKDOWNS = tuple(NodeEvent(at, node, kind) for at, node, kind in (
    (200.0, "node0", "down"), (350.0, "node0", "up"), (500.0, "node2", "down"), (700.0, "node2", "up"),
))  # fmt: skip
_LONG = 1e5  # seconds after which a scenario counts as stuck


@dataclass(frozen=True)
class Ending:
    """How a faulty scenario ended."""

    incidents: tuple[str, ...]
    unfinished: tuple[str, ...]


def run_faulty_scenario(policy: Policy, seed: int, performance: object = None, budget: float | None = None) -> Ending:
    """Run eight jobs on four nodes that fail, with unreliable messages."""
    rules = RunRules(facts=Facts(latency=3.0, grid=PowerGrid(carbon=CARBON)), seed=seed, budget=budget)
    tables = rules.load(Trace.from_records(some_jobs(f"faults {seed}")), read_cluster("4x4"))
    tables.performance = performance
    guard = rules.guard(policy)
    engine = rules.engine(rules.state(tables), rules.policy(policy, guard), guard)
    executor = FaultyExecutor(tables.F[JobColumn.WORK].copy(), _FAULTS, seed)
    driver = Acknowledged(engine, executor)
    Simulation(engine, latency=rules.facts.latency, node_events=_BREAKDOWNS, until=_LONG, driver=driver).run()
    left = np.flatnonzero(np.isnan(tables.F[JobColumn.FINISH]))
    return Ending(tuple(str(incident) for incident in engine.incidents), tuple(tables.ids[row] for row in left))


# A committer that refuses everything: nothing starts, and the policy is called again and again.

_ASKED = 40
_ROUND = 60.0
_MOST_GROWTH = 2.0


def ask_in_vain(policy: Policy) -> str:
    """What goes wrong while every grant is refused; empty: nothing."""
    jobs = [{"id": f"j{k}", "gpus": 1 + k % 4, "arrival": float(k), "estimate": 100.0 * (k + 1), "deadline": 5000.0} for k in range(12)]
    snapshot = decode_snapshot({"cluster": "2x4", "now": 12.0, "round": _ROUND, "jobs": jobs, "carbon": CARBON_WRITTEN})
    early = 0
    for number in range(1, _ASKED + 1):
        try:
            plan = policy.decide(snapshot)
        except (KeyboardInterrupt, TimeOverError):
            raise
        except BaseException as error:
            return f"refused {number - 1} times: {describe_error(policy, error)}"
        if not isinstance(plan, Plan):
            return f"it answers with a {type(plan).__name__}"
        try:
            memories.check(plan.memory)
            size = len(memories.encode(plan.memory))
        except GantlineError as error:
            return str(error)
        if number == _ASKED // 4:
            early = size
        snapshot = _later(snapshot, plan, number)
    if size > _MOST_GROWTH * max(early, 64):
        return f"its memory grows although nothing happens: {early} characters after {_ASKED // 4} refusals, {size} after {_ASKED}"
    return ""


def _later(snapshot: Snapshot, plan: Plan, number: int) -> Snapshot:
    """The same jobs a round later, none of them started."""
    now = snapshot.now + _ROUND
    memory = memories.decode(memories.encode(plan.memory))
    return replace(snapshot, now=now, decision=number + 1, jobs=Jobs(snapshot.lent, snapshot.jobs.rows, now), memory=memory)
