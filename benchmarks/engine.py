"""CPU milliseconds per decision of the engine alone, and CPU seconds of two whole runs.

A thousand gangs run on 4,096 GPUs (512 nodes of eight). The policy answers with plans made before, so what is measured is the question
(speeds, limits, snapshot), the check and the commit. Two runs follow: elastic equal share with about a thousand jobs, and three
hundred jobs whose speeds change by themselves every 90 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline import Assignments, Mode, Part, Plan, Policy, Snapshot, simulate
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.models.model import Gangs, PerformanceModel
from gantline.policies.placement.rules import find_placement
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace

JOBS, CLUSTER, DECISIONS = 1000, "512x8/64c", 40
LENGTH = 1e6


@dataclass(frozen=True)
class Told(Policy):
    """Answers with the plan it was handed last."""

    plans: list[Plan]

    def decide(self, snapshot: Snapshot) -> Plan:
        return self.plans[-1]


def engine() -> Engine:
    """A thousand jobs that wait."""
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 2, "duration": LENGTH} for k in range(JOBS)]
    tables = load_tables(Trace.from_records(rows), parse_cluster(CLUSTER))
    state = State(tables, Regime(), find_placement("first-free"))
    tables.I[Job.PHASE] = int(Phase.PENDING)
    state.activate(np.arange(JOBS))
    state.rebuild()
    return Engine(state, Told([]))


def decide(one: Engine, plan: Plan) -> None:
    one.state.now += 1.0
    assert isinstance(one.policy, Told)
    one.policy.plans[:] = [plan]
    asked = one.decide()
    assert asked is not None
    one.commit(asked)


def timed(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def per_decision(plans: Callable[[int], Plan]) -> tuple[float, float]:
    """Milliseconds per decision when plan number k follows plan number k - 1, and of the question alone."""
    one = engine()
    made = [plans(k) for k in range(DECISIONS + 2)]
    for plan in made[:2]:
        decide(one, plan)
    assert int((one.state.tables.I[Job.PHASE] == Phase.RUNNING).sum()) == JOBS, "not all run"
    whole = timed(lambda: [decide(one, plan) for plan in made[2:]] and None)

    def ask() -> None:
        if one.grants.minds_changes:
            one.grants.before_decision(one.futile.note)
        one.state.snapshot()

    question = timed(lambda: [ask() for _ in range(DECISIONS)] and None)
    return 1e3 * whole / DECISIONS, 1e3 * question / DECISIONS


EVERYBODY = np.arange(JOBS)


def resized(every: int) -> Callable[[int], Plan]:
    """One in so many has another size than in the plan before; 0: nobody."""

    def plan(k: int) -> Plan:
        gpus = np.full(JOBS, 2)
        if every:
            gpus[(EVERYBODY + k) % every == 0] = 3
        return Plan.assign(Assignments(EVERYBODY, gpus=gpus))

    return plan


def steady(**columns: Any) -> Callable[[int], Plan]:
    return lambda k: Plan.assign(Assignments(EVERYBODY, **columns))


def one_resize(k: int) -> Plan:
    gpus = np.full(JOBS, 2)
    gpus[7] = 2 + k % 2
    return Plan.assign(Assignments(EVERYBODY, gpus=gpus))


def all_resize(k: int) -> Plan:
    return Plan.assign(Assignments(EVERYBODY, gpus=np.full(JOBS, 2 + k % 2)))


def scenes() -> dict[str, tuple[float, Callable[[int], Plan]]]:
    """Name -> what is hoped for (ms), and the plans."""
    parts = [(Part("ps", 0, 1, gpus=0, cpus=1.0), Part("worker", 0, 2, gpus=1, cpus=1.0)) for _ in range(JOBS)]
    return {
        "nobody changes": (0.2, resized(0)),
        "one resizes": (1.0, one_resize),
        "one in twenty": (10.0, resized(20)),
        "all resize": (40.0, all_resize),
        "pairs, nobody": (1.0, steady(group=EVERYBODY // 2, mode=int(Mode.SPACE), fraction=0.5)),
        "groups of eight, nobody": (1.0, steady(group=EVERYBODY // 8, mode=int(Mode.TIME), share=0.25, size=8)),
        "parts, nobody": (1.0, steady(parts=parts)),
        "exact devices, nobody": (1.0, steady(devices=[(4 * k, 4 * k + 1) for k in range(JOBS)])),
        "batches, nobody": (1.0, steady(batch=64 + EVERYBODY)),
    }


@dataclass(frozen=True)
class EqualShare(Policy):
    """Everybody the same number of devices, the rest to the first."""

    def decide(self, snapshot: Snapshot) -> Plan:
        count = len(snapshot.jobs)
        if not count:
            return Plan()
        each, rest = divmod(snapshot.cluster.gpus, count)
        gpus = np.minimum(np.where(np.arange(count) < rest, each + 1, each), snapshot.jobs.max_gpus)
        some = np.flatnonzero(gpus > 0)
        return Plan.assign(Assignments(some, gpus=gpus[some]), valid_until=float("inf"))


def equal_share() -> tuple[float, int]:
    rng = np.random.default_rng(1)
    arrival = np.concatenate([np.zeros(1000), np.sort(rng.uniform(0.0, 1000.0, 1000))])
    rows = [
        {"job": f"j{k}", "arrival": float(at), "gpus": 2, "min_gpus": 1, "max_gpus": 8, "duration": float(length)}
        for k, (at, length) in enumerate(zip(arrival, rng.uniform(500.0, 4000.0, len(arrival))))
    ]
    run = simulate(rows, "512x8", EqualShare(), until=2000.0)
    return float(run.summary["cpu_seconds"]), int(run.summary["decisions"])


@dataclass(frozen=True)
class Waves(PerformanceModel):
    """Every job runs at another speed every 90 s, counted from its own start."""

    def rates(self, gangs: Gangs) -> tuple[Any, Any]:
        phase = gangs.rows * 7.0 % 90.0
        number = np.floor((gangs.now - phase) / 90.0 + 1e-9)
        return np.where(number % 2 == 0, 1.0, 0.5), phase + (number + 1.0) * 90.0


@dataclass(frozen=True)
class Everybody(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign(Assignments(np.arange(len(snapshot.jobs)), batch=64), valid_until=float("inf"))


def waves() -> float:
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 1e5} for k in range(300)]
    run = simulate(rows, "64x8", Everybody(), performance=Waves(), until=1200.0)
    return float(run.summary["cpu_seconds"])


def main() -> None:
    print(f"{'1,000 gangs on 4,096 GPUs':28} {'ms':>8} {'of which asking':>16} {'wanted':>8}")
    for name, (wanted, plans) in scenes().items():
        per_decision(plans)  # compile
        whole, question = per_decision(plans)
        print(f"{name:28} {whole:8.2f} {question:16.2f} {wanted:8.1f}")
    equal_share()
    seconds, decisions = equal_share()
    print(f"elastic equal share, {decisions} decisions: {seconds:.2f} CPU s (wanted 3 in 2,000)")
    waves()
    print(f"speeds that change every 90 s, 300 jobs over 1,200 s: {waves():.2f} CPU s (wanted 0.3)")


if __name__ == "__main__":
    main()
