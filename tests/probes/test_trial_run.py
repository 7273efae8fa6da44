"""A trial: a run whose work does not count, as in Lucid's profiler (Hu et al., ASPLOS 2023); the job begins again afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class TryFirst(Policy):
    """Thirty seconds of trial on one device for every job; then as asked for."""

    limit: float = 30.0
    seen: float = 30.0

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, rows, free = snapshot.jobs, [], snapshot.cluster.gpus
        for k in range(len(jobs)):
            fresh = jobs.attained[k] < self.seen
            need = 1 if fresh else int(jobs.gpus[k])
            if need <= free:
                rows.append(Assignment(k, gpus=1, purpose="trial", limit=self.limit) if fresh else Assignment(k))
                free -= need
        return Plan.assign(rows, valid_until=FOREVER)


def test_what_is_done_in_a_trial_does_not_count() -> None:
    run = simulate([job("a", 2, 100)], "1x2", TryFirst())

    assert spans(run, "a") == [(0.0, 30.0, [0], "limit"), (30.0, pytest.approx(130.0), [0, 1], "finished")]
    assert fact(run, "a", "service") == pytest.approx(130.0)


def test_a_job_that_is_done_within_its_trial_has_finished() -> None:
    run = simulate([job("short", 1, 20)], "1x1", TryFirst())

    assert spans(run, "short") == [(0.0, pytest.approx(20.0), [0], "finished")]


@dataclass(frozen=True)
class CallsItsMind(Policy):
    """Trains until 10 s, tries until 40 s, then trains, all on the same device."""

    def decide(self, snapshot: Snapshot) -> Plan:
        now = snapshot.now
        purpose, until = ("train", 10.0) if now < 10 else ("trial", 40.0) if now < 40 else ("train", FOREVER)
        return Plan.assign([Assignment(0, purpose=purpose)], valid_until=until)


def test_a_job_falls_back_to_where_it_stood_when_its_trial_began_and_is_started_again() -> None:
    run = simulate([job("a", 1, 100)], "1x1", CallsItsMind())

    assert fact(run, "a", "finish") == pytest.approx(130.0)  # ten seconds counted, thirty did not
    assert fact(run, "a", "restarts") == 2
    assert [(start, end) for start, end, _, _ in spans(run, "a")] == [(0.0, 10.0), (10.0, 40.0), (40.0, pytest.approx(130.0))]


def test_a_node_that_fails_ends_the_trials_on_it() -> None:
    failure = [NodeEvent(10.0, "node0", "down"), NodeEvent(20.0, "node0", "up")]

    run = simulate([job("a", 1, 100)], "1x1", TryFirst(seen=5.0), node_events=failure)

    assert spans(run, "a") == [(0.0, 10.0, [0], "node-lost"), (20.0, pytest.approx(120.0), [0], "finished")]


def test_a_purpose_that_nothing_knows_costs_the_turn_and_is_named() -> None:
    @dataclass(frozen=True)
    class Vague(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(0, purpose="trail")], valid_until=FOREVER)

    run = simulate([job("a", 1, 100)], "1x1", Vague(), until=50.0)

    assert spans(run, "a") == []
    assert "the purpose 'trail'" in run.incidents[0]
