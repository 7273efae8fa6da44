"""Keys in Python that are sums of columns are read once and run compiled; the result is that of asking at every decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.simulator.small_runs import draw

from gantline import OrderPolicy, Run, Snapshot, simulate
from gantline.core.plan import Misfit
from gantline.engine.drivers import simulation
from gantline.engine.drivers import simulation as compiled
from gantline.simulator.simulate import key_form
from gantline.traces.generators import generate


@dataclass(frozen=True)
class Written(OrderPolicy):
    """A policy as its user writes it: a key and nothing else."""

    calls: ClassVar[list[int]] = []
    function: Callable[[Any], Any] = lambda snapshot: snapshot.jobs.arrival

    def key(self, snapshot: Snapshot) -> Any:
        self.calls.append(1)
        return self.function(snapshot)


class Asked(Written):
    """The same, asked at every decision."""

    def decide(self, snapshot: Snapshot) -> Any:
        return super().decide(snapshot)


class Patient(Written):
    preempt = False


class AskedPatient(Asked):
    preempt = False


class Strict(Patient):
    misfit = Misfit.STOP


class AskedStrict(AskedPatient):
    misfit = Misfit.STOP


READ: dict[str, Callable[[Any], Any]] = {
    "arrival": lambda s: s.jobs.arrival,
    "size, then arrival": lambda s: s.jobs.gpus * 1e7 + s.jobs.arrival,
    "urgent first": lambda s: s.jobs.arrival - 1000.0 * s.jobs.priority,
    "a function of what is asked for": lambda s: np.where(s.jobs.gpus > 4, np.log1p(s.jobs.estimate), np.sqrt(s.jobs.arrival + 7.0)) / 3.0,
    "attained": lambda s: s.jobs.attained,
    "attained and ageing": lambda s: 3.0 * s.jobs.attained + s.jobs.arrival / 7.0,
    "gpu-time": lambda s: s.jobs.attained_gpu,
    "remaining": lambda s: s.jobs.remaining,
    "remaining area": lambda s: s.jobs.gpus * s.jobs.remaining,
    "longest first": lambda s: -s.jobs.remaining,
    "less than it seems": lambda s: 5.0 - (0.5 * s.jobs.attained).astype(float),
}
LIMITS, SHARES = np.array([60.0, 600.0]), np.array([1.0, 4.0, 9.0])


def _in_pieces(s: Any) -> Any:
    key = np.full(len(s.jobs), 50.0)
    late = s.jobs.waiting > 100.0
    key[late] = s.jobs.attained[late]
    key += s.jobs.gpus
    return key


LEVELS: dict[str, Callable[[Any], Any]] = {
    "levels, then arrival": lambda s: np.searchsorted([60.0, 600.0], s.jobs.attained_gpu, side="right") * 1e9 + s.jobs.arrival,
    "levels from the left": lambda s: 1e9 * np.searchsorted(LIMITS, s.jobs.attained) + s.jobs.arrival,
    "one limit": lambda s: s.jobs.arrival + np.where(s.jobs.attained_gpu < 600, 0, 1) * 1e9,
    "first started first": lambda s: (
        np.digitize(s.jobs.attained_gpu, LIMITS) * 1e12 + np.where(np.isnan(s.jobs.first_start), 1e11 + s.jobs.arrival, s.jobs.first_start)
    ),
}
NO_SUMS: dict[str, Callable[[Any], Any]] = {
    "the clock": lambda s: s.jobs.arrival / (1.0 + s.now),
    "two products": lambda s: 3.0 * (7.0 * s.jobs.attained),
    "two that move": lambda s: s.jobs.attained + s.jobs.remaining,
    "a quotient": lambda s: s.jobs.attained / 3.0,
    "a table": lambda s: SHARES[np.searchsorted(LIMITS, s.jobs.attained)] * s.jobs.attained_gpu,
    "conditions": lambda s: np.select([s.jobs.gpus > 4, s.jobs.attained < 60], [s.jobs.arrival, 0.5 * s.jobs.remaining], default=7),
    "not now": lambda s: np.where(s.jobs.waiting > 30.0, s.jobs.arrival, np.where(s.jobs.running, 0.0, np.inf)),
    "in pieces": _in_pieces,
}
ASKED: dict[str, Callable[[Any], Any]] = {
    "a logarithm of what moves": lambda s: np.log1p(s.jobs.attained),
    "a number of jobs": lambda s: np.arange(len(s.jobs), dtype=float),
    "a share": lambda s: s.jobs.attained / len(s.jobs),
    "ranks": lambda s: np.argsort(np.argsort(s.jobs.arrival)).astype(float),
    "a sum": lambda s: s.jobs.arrival - s.jobs.arrival.min(),
    "a branch": lambda s: s.jobs.arrival if (s.jobs.gpus > 3).any() else s.jobs.attained,
    "a loop": lambda s: [float(wait) for wait in s.jobs.waiting],
    "python's own": lambda s: s.jobs.arrival * float(s.now),
    "chance": lambda s: s.rng("x").random(len(s.jobs)),
    "not a number": lambda s: s.jobs.deadline,
    "outside of the table": lambda s: SHARES[np.searchsorted(LIMITS, s.jobs.attained) + (s.jobs.attained > 90)],
    "another column now and then": lambda s: s.jobs.attained if s.now % 180 < 60 else s.jobs.gpus + s.jobs.waiting * s.jobs.rate,
    "who holds what": lambda s: s.jobs.rows % 3 + s.cluster.node_free.sum() * s.jobs.running + s.jobs.remaining,
    "words": lambda s: s.jobs.arrival + 0.0 * len(str(s.jobs.arrival)),
}


def outcome(run: Run) -> tuple[str, list[Any]]:
    """Who held what when, and what the jobs had in the end; not how often somebody was asked."""
    return run.summary["log_hash"], run.jobs.drop("state").fill_nan(-1.0).rows()


def both(
    kind: type[Written], asked: type[Written], function: Callable[[Any], Any], number: int, hard: bool = False
) -> tuple[Any, Any, int]:
    trace, spec, _, options = draw(number, hard=hard)
    Written.calls.clear()
    read = outcome(simulate(trace, spec, kind(function), **options))
    calls = len(Written.calls)
    return read, outcome(step_by_step(trace, spec, asked(function), **options)), calls


def step_by_step(*given: Any, **options: Any) -> Run:
    """The same with the loop in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "run_compiled", lambda *given: (None, compiled.report_on("steps", "as the test wants it")))
        return simulate(*given, **options)


@pytest.mark.parametrize("name", [*READ, *LEVELS])
def test_a_key_of_columns_may_be_read(name: str) -> None:
    function = (READ | LEVELS)[name]
    for number in range(6000, 6003):
        kinds = (Written, Asked) if number % 2 else (Patient, AskedPatient)
        read, asked, _ = both(*kinds, function, number)
        assert read == asked


@pytest.mark.parametrize("name", ["attained and ageing", "remaining area", "urgent first", "one limit", "first started first"])
def test_so_it_may_where_jobs_have_several_ways_to_run(name: str) -> None:
    for number in range(6200, 6203):
        read, asked, _ = both(Written, Asked, (READ | LEVELS)[name], number, hard=True)
        assert read == asked


@pytest.mark.parametrize("name", [*NO_SUMS, *ASKED])
def test_any_other_key_is_asked(name: str) -> None:
    for plain, counted, number in ((Written, Asked, 6101), (Strict, AskedStrict, 6103)):
        read, asked, calls = both(plain, counted, (NO_SUMS | ASKED)[name], number)
        assert read == asked
        assert calls > 1


def test_nobody_is_asked_while_all_who_wait_ask_for_more_than_is_free() -> None:
    """A policy that stops nobody has nothing to say then; the number of decisions is what it was."""
    for number in range(6300, 6312):
        read, asked, _ = both(Patient, AskedPatient, ASKED["a share"], number, hard=number % 2 == 1)
        assert read == asked
    trace = generate("philly", seed=3, jobs=300, load=30.0, gpus=64)
    turns = []
    for kind in (Patient, AskedPatient):
        Written.calls.clear()
        run = simulate(trace, "8x8", kind(ASKED["a sum"]), round=60)
        turns.append((len(Written.calls), run.summary["decisions"], run.summary["log_hash"]))
    assert turns[0][1:] == turns[1][1:]
    assert 2 * turns[0][0] < turns[1][0]


def test_reading_saves_the_asking() -> None:
    """Work is counted, not time: one call for thousands of decisions."""
    trace = generate("philly", seed=3, jobs=300, load=1.5, gpus=64)
    for name, function in (READ | LEVELS).items():
        Written.calls.clear()
        run = simulate(trace, "8x8", Written(function), round=60)
        assert len(Written.calls) == 1, name
        assert run.summary["completed"] == 300
        assert run.summary["decisions"] > 100


def test_jobs_that_wait_for_ever_end_a_run_as_they_do_when_the_policy_is_asked() -> None:
    trace = generate("philly", seed=3, jobs=5, load=1.5, gpus=64)
    kinds = [kind(lambda s: np.where(s.now >= 0.0, np.inf, s.jobs.waiting)) for kind in (Written, Asked)]
    read, asked = ((run.summary["decisions"], run.incidents) for run in (simulate(trace, "8x8", each, round=60) for each in kinds))
    assert read == asked


@pytest.mark.parametrize("name", [*NO_SUMS, *ASKED])
def test_the_reason_is_told(name: str) -> None:
    told = key_form(Written((NO_SUMS | ASKED)[name]))
    assert told.startswith("asked at every decision, because its key ")
    assert told == "asked at every decision, because its key is no sum of columns, with a level in front or not" or "takes" in told


HINTS: dict[str, Callable[[Any], Any]] = {
    "next round": lambda s: None,
    "for ever": lambda s: math.inf,
    "a look at the clock": lambda s: s.now + 60.0,
    "a look at the jobs": lambda s: math.inf if len(s.jobs) < 2 else s.now,
}
TURNS = ("attained", "gpu-time", "longest first", "attained and ageing", "levels, then arrival")


def hinted(kind: type[Written], hint: Callable[[Any], Any]) -> Any:
    return type("Hinted", (kind,), {"valid_until": lambda self, snapshot: hint(snapshot)})


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("name", ["size, then arrival", "remaining", "remaining area", "less than it seems", *TURNS])
def test_a_true_hint_on_how_long_an_order_holds_changes_neither_the_run_nor_how_it_is_made(name: str, hint: str) -> None:
    """One that is not true counts as it does where the policy is asked, which it then is."""
    function = (READ | LEVELS)[name]
    for number in (6001, 6004):
        read, asked, calls = both(hinted(Written, HINTS[hint]), hinted(Asked, HINTS[hint]), function, number)
        assert read == asked
        if hint != "for ever" or name not in TURNS:
            assert calls == 1


@pytest.mark.parametrize("until", ["soon", math.nan, 500.0], ids=str)
def test_a_hint_that_cannot_be_heeded_in_compiled_code_is_asked_for(until: Any) -> None:
    policy = hinted(Written, lambda s: until)(READ["remaining"])
    assert key_form(policy).startswith("asked at every decision, because its valid_until()")


def test_it_is_said_that_a_hint_is_not_asked_for() -> None:
    told = key_form(hinted(Written, HINTS["a look at the clock"])(READ["remaining"]))
    assert told.startswith("compiled: key() is read once, and a decision costs what changes; valid_until() is not asked, because ")
    assert "valid_until" not in key_form(hinted(Written, HINTS["for ever"])(READ["remaining"]))
