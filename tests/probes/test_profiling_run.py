"""A profiling run: a job gets devices for a limited time, then the run ends by itself whatever the policy says meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class ProfileFirst(Policy):
    """Thirty seconds on one device for everybody (as Lucid's profiler does); then whole, in order of arrival."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, rows, free = snapshot.jobs, [], snapshot.cluster.gpus
        for k in range(len(jobs)):
            fresh = jobs.attained[k] < 30.0
            need = 1 if fresh else int(jobs.gpus[k])
            if need <= free:
                rows.append(Assignment(k, gpus=1, purpose="profile", limit=30.0) if fresh else Assignment(k))
                free -= need
        return Plan.assign(rows, valid_until=FOREVER)


def test_what_was_done_while_profiling_counts() -> None:
    run = simulate([job("a", 2, 100)], "1x2", ProfileFirst())

    assert spans(run, "a") == [(0.0, 30.0, [0], "limit"), (30.0, pytest.approx(115.0), [0, 1], "finished")]
    assert fact(run, "a", "service") == pytest.approx(115.0)


def test_a_limit_needs_no_policy_to_be_kept() -> None:
    @dataclass(frozen=True)
    class Forgetful(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            if snapshot.now > 0:
                raise RuntimeError("lost")
            return Plan.assign([Assignment(0, purpose="profile", limit=5.0)], valid_until=FOREVER)

    run = simulate([job("a", 1, 100)], "1x1", Forgetful(), until=50.0)

    assert spans(run, "a") == [(0.0, 5.0, [0], "limit")]
