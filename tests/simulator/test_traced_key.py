"""Keys in Python that are arithmetic on columns are read once and run compiled; the result is that of asking at every decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.simulator.small_runs import draw

from gantline import OrderPolicy, Run, Snapshot, simulate
from gantline.workload.generators import generate


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
ASKED: dict[str, Callable[[Any], Any]] = {
    "the clock": lambda s: s.jobs.arrival / (1.0 + s.now),
    "who waits": lambda s: -s.jobs.waiting,
    "a number of jobs": lambda s: np.arange(len(s.jobs), dtype=float),
    "ranks": lambda s: np.argsort(np.argsort(s.jobs.arrival)).astype(float),
    "a sum": lambda s: s.jobs.arrival - s.jobs.arrival.min(),
    "a branch": lambda s: s.jobs.arrival if (s.jobs.gpus > 3).any() else s.jobs.attained,
    "a curve of what moves": lambda s: np.log1p(s.jobs.attained),
    "two products": lambda s: 3.0 * (7.0 * s.jobs.attained),
    "two that move": lambda s: s.jobs.attained + s.jobs.remaining,
    "a quotient": lambda s: s.jobs.attained / 3.0,
    "not a number": lambda s: s.jobs.deadline,
    "words": lambda s: s.jobs.arrival + 0.0 * len(str(s.jobs.arrival)),
}


def outcome(run: Run) -> tuple[str, list[Any]]:
    """Who held what when, and what the jobs had in the end; not how often somebody was asked."""
    return run.summary["log_hash"], run.jobs.drop("state").fill_nan(-1.0).rows()


def both(kind: type[Written], asked: type[Written], function: Callable[[Any], Any], number: int) -> tuple[Any, Any, int]:
    trace, spec, _, options = draw(number, hard=False)
    Written.calls.clear()
    read = outcome(simulate(trace, spec, kind(function), **options))
    calls = len(Written.calls)
    return read, outcome(simulate(trace, spec, asked(function), **options)), calls


@pytest.mark.parametrize("name", READ)
def test_a_key_of_columns_may_be_read(name: str) -> None:
    for number in range(6000, 6008):
        kinds = (Written, Asked) if number % 2 else (Patient, AskedPatient)
        read, asked, _ = both(*kinds, READ[name], number)
        assert read == asked


@pytest.mark.parametrize("name", ASKED)
def test_any_other_key_is_asked(name: str) -> None:
    for number in (6100, 6101):
        read, asked, calls = both(Written, Asked, ASKED[name], number)
        assert read == asked
        assert calls > 1


def test_reading_saves_the_asking() -> None:
    """Work is counted, not time: one call for thousands of decisions."""
    trace = generate("philly", seed=3, jobs=300, load=1.5, gpus=64)
    for name, function in READ.items():
        Written.calls.clear()
        run = simulate(trace, "8x8", Written(function), round=60)
        assert len(Written.calls) == 1, name
        assert run.summary["completed"] == 300
        assert run.summary["decisions"] > 100
