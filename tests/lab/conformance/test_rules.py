"""A policy that breaks a rule is caught by that rule, and told how."""

from __future__ import annotations

import datetime
import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.engine.assigning import Pairs

from gantline import Assignment, OrderPolicy, Plan, Policy, Snapshot
from gantline.core.columns import Job
from gantline.core.tables import tables_behind
from gantline.engine.drivers import stepping
from gantline.lab.conformance import check_policy, scenarios, suite
from gantline.lab.conformance.watched import fence

COUNTER = itertools.count()


@dataclass(frozen=True)
class ByArrival(OrderPolicy):
    """A policy without fault."""

    name: ClassVar[str] = "by-arrival"

    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.arrival


def ordered(read: Callable[[Snapshot], Any]) -> type[Policy]:
    """A policy whose key a function gives."""

    class Ordered(OrderPolicy):
        def key(self, snapshot: Snapshot) -> Any:
            return read(snapshot)

    return Ordered


def after(act: Callable[[Snapshot], Any]) -> type[Policy]:
    """A policy that does something before it orders by arrival."""
    return ordered(lambda snapshot: (act(snapshot), snapshot.jobs.arrival)[1])


def planned(decide: Callable[[Snapshot], Plan]) -> type[Policy]:
    class Planned(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return decide(snapshot)

    return Planned


def remembering(turn: Callable[[Snapshot], Any]) -> type[Policy]:
    """A policy that orders by arrival and remembers what a function gives."""
    return planned(lambda snapshot: Plan.rank(snapshot.jobs.arrival, memory=turn(snapshot)))


def counts_in_place(snapshot: Snapshot) -> Any:
    memory = snapshot.memory if snapshot.memory is not None else {"turns": 0}
    memory["turns"] += 1
    return memory


def gives_up(snapshot: Snapshot) -> int:
    turns: int = (snapshot.memory or 0) + 1
    if turns > 30 and not snapshot.jobs.running.any() and len(snapshot.jobs):
        raise RuntimeError("nobody listens")
    return turns


@dataclass(frozen=True)
class HiddenField(OrderPolicy):
    seen: list[int] = field(default_factory=list)

    def key(self, snapshot: Snapshot) -> Any:
        self.seen.append(1)
        return snapshot.jobs.arrival + len(self.seen)


class ReadsClock(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        time.monotonic()
        return snapshot.jobs.arrival


class PromisesTooMuch(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.attained

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


class IsNotItsKey(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.gpus.astype(float)

    def by_key(self) -> bool:
        return True

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(-self.key(snapshot))


HIDDEN_COUNTER = ordered(lambda snapshot: snapshot.jobs.arrival * (-1.0 if next(COUNTER) % 2 else 1.0))
CHANGES_TABLES = after(lambda snapshot: np.add(column := tables_behind(snapshot).F[Job.PRIORITY], 1.0, out=column))
GREEDY = planned(lambda snapshot: Plan.assign([Assignment(job) for job in range(len(snapshot.jobs))]))
WHOLE_CLUSTER = planned(lambda snapshot: Plan.assign([Assignment(0, gpus=snapshot.cluster.gpus)] if len(snapshot.jobs) else []))
LAST_FIRST = ordered(lambda snapshot: -np.arange(len(snapshot.jobs), dtype=float))
NEVER_LARGE = ordered(lambda snapshot: np.where(snapshot.jobs.gpus > 2, np.inf, snapshot.jobs.arrival))
NEEDS_JOBS = ordered(lambda snapshot: snapshot.jobs.arrival - snapshot.jobs.arrival.min())
HOARDER = remembering(lambda snapshot: [*(snapshot.memory or []), *snapshot.jobs.arrival.tolist()])
LOTTERY = ordered(lambda snapshot: snapshot.rng("lottery").random(len(snapshot.jobs)))  # no fault: this chance is the snapshot's


@pytest.fixture
def few_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough scenarios to find every fault of this file, in less time: one of equal jobs in rounds, one of ranges on events."""
    few = tuple(scenario for scenario in suite.scenarios() if scenario.name in ("equals", "ranges"))
    monkeypatch.setattr(suite, "scenarios", lambda: few)
    monkeypatch.setattr(suite, "_FAULTY_SCENARIOS", ())


@pytest.mark.usefixtures("few_scenarios")
@pytest.mark.parametrize(
    ("policy", "rule", "told"),
    [
        (HIDDEN_COUNTER, "memory only", "a rebuilt policy decides otherwise"),
        (HiddenField, "memory only", "a rebuilt policy decides otherwise"),
        (remembering(lambda snapshot: {"when": datetime.timedelta(1)}), "memory", "timedelta"),
        (remembering(counts_in_place), "input", "was changed"),
        (CHANGES_TABLES, "input", "was changed"),
        (after(lambda snapshot: snapshot.jobs.gpus.fill(1)), "answers", "read-only"),
        (ReadsClock, "purity", "time.monotonic in key()"),
        (after(lambda snapshot: datetime.datetime.now()), "purity", "datetime.now"),
        (after(lambda snapshot: random.random()), "purity", "global generator of random"),
        (after(lambda snapshot: np.random.random()), "purity", "global generator of NumPy"),  # noqa: NPY002
        (after(lambda snapshot: np.random.default_rng()), "purity", "no seed controls"),
        (after(lambda snapshot: Path(__file__).read_text(encoding="utf-8")), "purity", "does I/O: open"),
        (GREEDY, "feasible", "assigned what it cannot get"),
        (WHOLE_CLUSTER, "ranges", "GPUs and may have"),
        (PromisesTooMuch, "valid_until", "parts:"),
        (IsNotItsKey, "compiled key", "parts:"),
        (LAST_FIRST, "ties", "equal-5 start"),
        (NEVER_LARGE, "ends", "never end"),
        (NEEDS_JOBS, "answers", "without jobs: the policy raised ValueError"),
        (HOARDER, "refusals", "memory grows"),
        (remembering(gives_up), "refusals", "refused 30 times"),
    ],
)
def test_a_broken_rule_is_found_and_told(policy: type[Policy], rule: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rules are broken in the first scenarios already; the others are told where these are not enough."""
    every, faulty = suite.scenarios(), suite._FAULTY_SCENARIOS
    monkeypatch.setattr(stepping, "STALL", 50)  # a run in which nothing happens is given up sooner
    for some, worlds in ((every[:2], ()), (every, faulty)):
        monkeypatch.setattr(suite, "scenarios", lambda some=some: some)
        monkeypatch.setattr(suite, "_FAULTY_SCENARIOS", worlds)
        broken = {finding.rule: finding.message for finding in check_policy(policy).broken}
        if rule in broken:
            break
    assert rule in broken, broken
    assert told in broken[rule]


def test_a_job_that_a_faulty_world_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "scenarios", tuple)
    monkeypatch.setattr(suite, "_FAULTY_SCENARIOS", (0,))
    monkeypatch.setattr(suite, "_FAULTY_CLOSELY", 40)
    monkeypatch.setattr(scenarios, "_LONG", 1e4)  # seconds; by then the four others have ended
    broken = {finding.rule: finding.message for finding in check_policy(NEVER_LARGE).broken}
    assert broken["faults"].startswith("4 jobs never end")


@pytest.mark.parametrize(("number", "policy"), list(enumerate([ByArrival, LOTTERY, Pairs])))
def test_a_policy_without_fault_passes(number: int, policy: type[Policy], monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the scenarios."""
    share = suite.scenarios()[number::6]
    monkeypatch.setattr(suite, "scenarios", lambda: share)
    monkeypatch.setattr(suite, "_FAULTY_SCENARIOS", (number,) if number else ())
    report = check_policy(policy())
    assert report.passed, f"\n{report}"


@pytest.mark.usefixtures("few_scenarios")
def test_a_report_has_a_line_per_rule() -> None:
    report = check_policy(ByArrival)
    lines = str(report).splitlines()
    assert lines[0] == "policy 'by-arrival'"
    assert len(lines) == 1 + len(report.findings)
    assert all(line.startswith("ok") for line in lines[1:])
    assert {"purity", "memory only", "valid_until", "ties"} <= {finding.rule for finding in report.findings}


def test_the_fence_lets_pure_code_and_seeded_generators_through() -> None:
    with fence() as crossed:
        np.sort(np.random.default_rng(7).random(100))
        random.Random(3).random()
        sorted(str(number) for number in range(10))
    assert crossed == []


def test_the_fence_is_taken_down_again() -> None:
    with pytest.raises(ZeroDivisionError), fence():
        print(1 / 0)
    with fence() as crossed:
        pass
    time.monotonic()
    assert crossed == []
