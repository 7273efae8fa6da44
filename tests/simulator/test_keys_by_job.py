"""A key that is said to look at each job by itself is asked only about jobs that may have changed; the result is that of asking always."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.simulator.small_runs import draw
from tests.simulator.test_python_keys import outcome, step_by_step

from gantline import OrderPolicy, Run, Snapshot, simulate
from gantline.drivers.python_keys.questions import Questions
from gantline.engine.engine import Engine
from gantline.simulator.key_form import key_form
from gantline.workload.trace import Trace


@dataclass(frozen=True)
class ByJob(OrderPolicy):
    """A policy that says that it looks at each job by itself."""

    per_job: ClassVar[bool] = True
    asked: ClassVar[list[int]] = []  # about how many jobs, each time
    function: Callable[[Any], Any] = lambda snapshot: snapshot.jobs.arrival

    def key(self, snapshot: Snapshot) -> Any:
        count = len(snapshot.jobs)
        if isinstance(count, int):  # else it is being read, and told what it may not ask
            self.asked.append(count)
        return self.function(snapshot)


class Patient(ByJob):
    preempt = False


class Steady(ByJob):
    """It knows without a look until when its order holds."""

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


class Hourly(ByJob):
    def valid_until(self, snapshot: Snapshot) -> float:
        return snapshot.now + (60.0 if len(snapshot.jobs) % 2 else 600.0)


def _levels(s: Any) -> Any:
    return [float(a > 120.0) * 1e6 + t for a, t in zip(s.jobs.attained_gpu, s.jobs.arrival)]


def _patience(s: Any) -> Any:
    """Only those who have been stopped grow impatient: the clock is read when there is one."""
    return np.array([t - (s.jobs.waiting[k] if s.jobs.preemptions[k] else 0.0) for k, t in enumerate(s.jobs.remaining)])


def _later(s: Any) -> Any:
    return [math.inf if wait < 60.0 and not runs else t for wait, runs, t in zip(s.jobs.waiting, s.jobs.running, s.jobs.arrival)]


def _unlucky(s: Any) -> Any:
    return [t + 1.0 / (3 - restarts) for t, restarts in zip(s.jobs.arrival, s.jobs.restarts.tolist())]


FIXED: dict[str, Callable[[Any], Any]] = {
    "by size": lambda s: [1000.0 * math.sqrt(g) + t for g, t in zip(s.jobs.gpus, s.jobs.arrival)],
    "by name": lambda s: np.array([float(sum(map(ord, name))) for name in s.jobs.ids]),
    "never": lambda s: [math.inf if g == 3 else -g for g in s.jobs.gpus.tolist()],
}
STILL: dict[str, Callable[[Any], Any]] = {
    "least left": lambda s: s.jobs.remaining if len(s.jobs) else np.zeros(0),
    "levels": _levels,
    "starts": lambda s: [t if math.isnan(first) else first for first, t in zip(s.jobs.first_start, s.jobs.arrival)],
    "held": lambda s: [g - 3 * h + 100.0 * p for g, h, p in zip(s.jobs.gpus.tolist(), s.jobs.held.tolist(), s.jobs.preemptions.tolist())],
    "on its way": lambda s: [-float(r) * v + a for r, v, a in zip(s.jobs.running, s.jobs.rate, s.jobs.attained)],
    "may fail": _unlucky,
}
AGEING: dict[str, Callable[[Any], Any]] = {
    "patience": _patience,
    "the clock": lambda s: [(t - s.now) / (1.0 + e) for t, e in zip(s.jobs.arrival, s.jobs.estimate)],
    "later": _later,
    "the number of the question": lambda s: [float((g + s.decision) % 3) for g in s.jobs.gpus.tolist()],
    "the cluster": lambda s: [float(g <= s.cluster.node_free.max()) for g in s.jobs.gpus.tolist()],
}
KEYS = FIXED | STILL | AGEING
#: a queue that grows for an hour on eight devices
TRACE = Trace.from_records(
    [
        {"id": f"j{k}", "arrival": 12.0 * k, "gpus": 1 + k % 4, "duration": 60.0 + 37 * k % 400, "estimate": 60.0 + 37 * k % 400}
        for k in range(300)
    ]
)


@pytest.mark.parametrize("name", KEYS)
def test_it_goes_as_if_the_policy_were_asked_about_all_jobs_at_every_decision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody looks whether it does."""
    monkeypatch.setattr(Questions, "first_check", 1 << 40)
    for number in range(7000, 7009):
        kind = (ByJob, Patient, Steady)[number % 3] if name not in AGEING else (ByJob, Patient, Hourly)[number % 3]
        trace, spec, _, options = draw(number, hard=number % 2 == 1)
        policy = kind(KEYS[name])
        assert _told(simulate(trace, spec, policy, **options)) == _told(step_by_step(trace, spec, _always(policy), **options)), number


def _always(policy: ByJob) -> ByJob:
    """The same, asked about all jobs at every decision."""
    kind = type(policy)
    return type("Always", (kind,), {"per_job": False, "decide": lambda self, snapshot: kind.decide(self, snapshot)})(policy.function)


def _told(run: Run) -> Any:
    """What came of it, and what went wrong; whose keys never change is not asked a thousand times before it is given up."""
    return outcome(run), [str(one) for one in run.incidents if "given up" not in str(one)]


@pytest.mark.parametrize("rounds", [0.0, 60.0])
def test_a_key_that_lets_nobody_run_is_given_up_with_a_word(rounds: float) -> None:
    run = simulate(TRACE, "1x8", ByJob(lambda s: [math.inf for _ in s.jobs.gpus.tolist()]), round=rounds)
    assert run.summary["unfinished"] == 300
    assert "given up" in run.incidents[-1]


def test_one_that_looks_at_the_others_is_not_believed_for_good() -> None:
    """Who asks for the most GPUs of all comes first: what it reads never changes, but who is there does."""
    looks_around = ByJob(lambda s: [float(g < max(s.jobs.gpus.tolist())) for g in s.jobs.gpus.tolist()])
    assert "asked once" not in key_form(looks_around)
    crowd = Trace.from_records([{"id": f"j{k}", "arrival": 0.0, "gpus": 1 + k % 4, "duration": 60.0 + 7 * k} for k in range(40)])
    assert _told(simulate(crowd, "1x8", looks_around, round=60)) == _told(step_by_step(crowd, "1x8", _always(looks_around), round=60))


@pytest.mark.parametrize("name", FIXED)
def test_what_never_changes_is_asked_once(name: str) -> None:
    ByJob.asked.clear()
    run = simulate(TRACE, "1x8", ByJob(FIXED[name]), round=60)
    once = [300, 1, 2, 4, 8, 16, 32, 64, 128, 45]  # and once more in other company
    assert ByJob.asked[: len(once)] == once
    assert len(ByJob.asked) <= len(once) + (1 + math.log2(run.summary["decisions"]) if name == "never" else 0)
    assert "asked once about all jobs" in key_form(ByJob(FIXED[name]))


@pytest.mark.parametrize("name", STILL)
def test_work_is_counted_in_jobs_asked_about(name: str) -> None:
    """Those who run, and of those who wait whom something has happened to; and all now and then, to see that it is so."""
    ByJob.asked.clear()
    run = simulate(TRACE, "1x8", ByJob(STILL[name]), round=60)
    held_against = 300 * (2 + math.log2(run.summary["decisions"]))
    assert sum(ByJob.asked) <= 8 * run.summary["decisions"] + 300 + run.summary["preemptions"] + held_against
    assert key_form(ByJob(STILL[name])).startswith("asked at every decision about those jobs that may have changed, because")


@pytest.mark.parametrize("until", ["soon", math.nan])
def test_what_is_no_time_costs_a_turn(until: Any) -> None:
    kind = type("Odd", (ByJob,), {"valid_until": lambda self, snapshot: until})
    run = simulate(Trace(TRACE.frame.head(3), "few"), "1x8", kind(STILL["levels"]), round=60)
    assert f"valid_until is {until!r}" in str(run.incidents[0])


def test_whoever_reads_the_clock_is_asked_about_all() -> None:
    assert key_form(ByJob(AGEING["the clock"])) == "asked at every decision, because it takes a loop over jobs"


def test_a_false_promise_is_found_and_all_jobs_are_asked_about_from_there_on(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, decide = [], Engine.decide
    monkeypatch.setattr(Engine, "decide", lambda self: turns.append(1) or decide(self))
    run = simulate(TRACE, "1x8", ByJob(lambda s: [max(s.jobs.attained.tolist()) - done for done in s.jobs.attained]), round=60)
    assert run.summary["decisions"] / 2 < len(turns) < run.summary["decisions"]
