"""A packed pair of unequal sizes: a job on two devices shares one of them with a smaller one; speeds come from a performance model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.performance.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class PackAll(Policy):
    """Everybody in one group, as Gandiva packs when jobs outnumber devices."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, group=0, mode=Mode.SPACE) for k in range(len(snapshot.jobs))], valid_until=FOREVER)


@dataclass(frozen=True)
class PairSpeeds(PerformanceModel):
    """Measured speeds of models side by side, relative to each alone."""

    table: dict[tuple[str, str], float]

    def granted(self, gang: Gang) -> float | None:
        return self.table[gang.model, gang.mates[0].model] if gang.mates else None


SPEEDS = PairSpeeds({("vision", "language"): 0.8, ("language", "vision"): 0.6})
JOBS = [job("wide", 2, 120, model="vision"), job("slim", 1, 60, model="language")]


@pytest.mark.parametrize("round_length", [None, 60.0])
def test_a_wide_and_a_slim_job_share_a_device_and_the_survivor_speeds_up(round_length: float | None) -> None:
    run = simulate(JOBS, "1x2", PackAll(), performance=SPEEDS, round=round_length)

    assert spans(run, "slim") == [(0.0, pytest.approx(100.0), [0], "finished")]
    assert spans(run, "wide") == [(0.0, pytest.approx(140.0), [0, 1], "finished")]  # 80 of 120 by 100 s, the rest alone
    assert fact(run, "wide", "restarts") == 0


def test_without_a_model_the_device_is_divided_and_the_gang_follows_its_slowest_worker() -> None:
    run = simulate(JOBS, "1x2", PackAll())

    assert fact(run, "slim", "finish") == pytest.approx(120.0)
    assert fact(run, "wide", "finish") == pytest.approx(180.0)


def test_a_device_that_two_jobs_share_is_busy_once() -> None:
    run = simulate(JOBS, "1x2", PackAll())

    assert run.summary["utilization"] == pytest.approx(1.0)


@dataclass(frozen=True)
class PackNewcomer(Policy):
    """The running gang keeps its devices; who comes later joins it."""

    def decide(self, snapshot: Snapshot) -> Plan:
        count = len(snapshot.jobs)
        mode: Any = Mode.SPACE if count > 1 else Mode.EXCLUSIVE
        return Plan.assign([Assignment(k, group=0 if count > 1 else -1, mode=mode) for k in range(count)], valid_until=FOREVER)


def test_a_running_gang_takes_a_mate_in_and_lets_it_go_without_a_restart() -> None:
    jobs = [job("first", 1, 100), job("second", 2, 20, at=50.0)]
    run = simulate(jobs, "2x1", PackNewcomer())

    assert spans(run, "first") == [(0.0, pytest.approx(120.0), [0], "finished")]
    assert spans(run, "second") == [(50.0, pytest.approx(90.0), [0, 1], "finished")]
    assert fact(run, "first", "preemptions") == 0
