"""A policy that breaks a rule is caught by that rule, and told how."""

from __future__ import annotations

import datetime
import itertools
import math
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.engine.assigning import Pairs

from gantline import Assignment, OrderPolicy, Plan, Policy, Snapshot
from gantline.core.columns import Job
from gantline.core.snapshot import tables_behind
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


@dataclass(frozen=True)
class HiddenCounter(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.arrival * (-1.0 if next(COUNTER) % 2 else 1.0)


@dataclass(frozen=True)
class HiddenField(OrderPolicy):
    seen: list[int] = field(default_factory=list)

    def key(self, snapshot: Snapshot) -> Any:
        self.seen.append(1)
        return snapshot.jobs.arrival + len(self.seen)


@dataclass(frozen=True)
class OddMemory(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(snapshot.jobs.arrival, memory={"when": datetime.timedelta(1)})


@dataclass(frozen=True)
class ChangesMemory(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        memory = snapshot.memory if snapshot.memory is not None else {"turns": 0}
        memory["turns"] += 1
        return Plan.rank(snapshot.jobs.arrival, memory=memory)


@dataclass(frozen=True)
class ChangesTables(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        tables_behind(snapshot).F[Job.PRIORITY] += 1.0
        return Plan.rank(snapshot.jobs.arrival)


@dataclass(frozen=True)
class WritesColumn(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        snapshot.jobs.gpus[:] = 1
        return Plan.rank(snapshot.jobs.arrival)


@dataclass(frozen=True)
class ReadsClock(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        time.monotonic()
        return snapshot.jobs.arrival


@dataclass(frozen=True)
class ReadsCalendar(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        datetime.datetime.now()
        return snapshot.jobs.arrival


@dataclass(frozen=True)
class DrawsGlobally(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        random.random()
        return snapshot.jobs.arrival


@dataclass(frozen=True)
class DrawsFromNumpy(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        np.random.random()  # noqa: NPY002
        return snapshot.jobs.arrival


@dataclass(frozen=True)
class DrawsWithoutSeed(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        np.random.default_rng()
        return snapshot.jobs.arrival


@dataclass(frozen=True)
class ReadsFile(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        Path(__file__).read_text(encoding="utf-8")
        return snapshot.jobs.arrival


@dataclass(frozen=True)
class Greedy(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(job) for job in range(len(snapshot.jobs))])


@dataclass(frozen=True)
class OneAtATime(Policy):
    """Gives the oldest job the whole cluster, whatever it may have."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(0, gpus=snapshot.cluster.gpus)] if len(snapshot.jobs) else [])


@dataclass(frozen=True)
class PromisesTooMuch(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.attained

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


@dataclass(frozen=True)
class IsNotItsKey(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.gpus.astype(float)

    def by_key(self) -> bool:
        return True

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(-self.key(snapshot))


@dataclass(frozen=True)
class LastFirst(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return -np.arange(len(snapshot.jobs), dtype=float)


@dataclass(frozen=True)
class NeverLarge(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return np.where(snapshot.jobs.gpus > 2, np.inf, snapshot.jobs.arrival)


@dataclass(frozen=True)
class NeedsJobs(OrderPolicy):
    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.arrival - snapshot.jobs.arrival.min()


@dataclass(frozen=True)
class Hoarder(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(snapshot.jobs.arrival, memory=[*(snapshot.memory or []), *snapshot.jobs.arrival.tolist()])


@dataclass(frozen=True)
class GivesUp(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        turns = (snapshot.memory or 0) + 1
        if turns > 30 and not snapshot.jobs.running.any() and len(snapshot.jobs):
            raise RuntimeError("nobody listens")
        return Plan.rank(snapshot.jobs.arrival, memory=turns)


@dataclass(frozen=True)
class Lottery(OrderPolicy):
    """Chance is no fault when it comes from the snapshot."""

    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.rng("lottery").random(len(snapshot.jobs))


@pytest.fixture
def few_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough stories to find every fault of this file, in less time: one of equal jobs in rounds, one of ranges on events."""
    few = tuple(story for story in suite.scenarios() if story.name in ("equals", "ranges"))
    monkeypatch.setattr(suite, "scenarios", lambda: few)
    monkeypatch.setattr(suite, "_FAULTY_STORIES", ())


@pytest.mark.usefixtures("few_stories")
@pytest.mark.parametrize(
    ("policy", "rule", "told"),
    [
        (HiddenCounter, "memory only", "a rebuilt policy decides otherwise"),
        (HiddenField, "memory only", "a rebuilt policy decides otherwise"),
        (OddMemory, "memory", "timedelta"),
        (ChangesMemory, "input", "was changed"),
        (ChangesTables, "input", "was changed"),
        (WritesColumn, "answers", "read-only"),
        (ReadsClock, "purity", "time.monotonic in key()"),
        (ReadsCalendar, "purity", "datetime.now"),
        (DrawsGlobally, "purity", "global generator of random"),
        (DrawsFromNumpy, "purity", "global generator of NumPy"),
        (DrawsWithoutSeed, "purity", "no seed controls"),
        (ReadsFile, "purity", "does I/O: open"),
        (Greedy, "feasible", "assigned what it cannot get"),
        (OneAtATime, "ranges", "GPUs and may have"),
        (PromisesTooMuch, "valid_until", "parts:"),
        (IsNotItsKey, "compiled key", "parts:"),
        (LastFirst, "ties", "equal-5 start"),
        (NeverLarge, "ends", "never end"),
        (NeedsJobs, "answers", "without jobs: the policy raised ValueError"),
        (Hoarder, "refusals", "memory grows"),
        (GivesUp, "refusals", "refused 30 times"),
    ],
)
def test_a_broken_rule_is_found_and_told(policy: type[Policy], rule: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rules are broken in the first stories already; the others are told where these are not enough."""
    every, faulty = suite.scenarios(), suite._FAULTY_STORIES
    monkeypatch.setattr(stepping, "STALL", 50)  # a run in which nothing happens is given up sooner
    for stories, worlds in ((every[:2], ()), (every, faulty)):
        monkeypatch.setattr(suite, "scenarios", lambda stories=stories: stories)
        monkeypatch.setattr(suite, "_FAULTY_STORIES", worlds)
        broken = {finding.rule: finding.message for finding in check_policy(policy).broken}
        if rule in broken:
            break
    assert rule in broken, broken
    assert told in broken[rule]


def test_a_job_that_a_faulty_world_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "scenarios", tuple)
    monkeypatch.setattr(suite, "_FAULTY_STORIES", (0,))
    monkeypatch.setattr(suite, "_FAULTY_CLOSELY", 40)
    monkeypatch.setattr(scenarios, "_LONG", 1e4)  # seconds; by then the four others have ended
    broken = {finding.rule: finding.message for finding in check_policy(NeverLarge).broken}
    assert broken["faults"].startswith("4 jobs never end")


@pytest.mark.parametrize(("number", "policy"), list(enumerate([ByArrival, Lottery, Pairs])))
def test_a_policy_without_fault_passes(number: int, policy: type[Policy], monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the stories."""
    share = suite.scenarios()[number::6]
    monkeypatch.setattr(suite, "scenarios", lambda: share)
    monkeypatch.setattr(suite, "_FAULTY_STORIES", (number,) if number else ())
    report = check_policy(policy())
    assert report.passed, f"\n{report}"


@pytest.mark.usefixtures("few_stories")
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
