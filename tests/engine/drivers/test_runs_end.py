"""Every run ends, and ends alike on both clocks: late on the clock, behind an admission rule, with changes that take all the time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.jobs import job_row

from gantline import simulate
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.snapshot import Snapshot


@pytest.mark.parametrize("executor", ["instant", "acknowledged", "measured", "faulty:1", "faulty:3"])
def test_a_short_job_ends_however_late_it_is(executor: str) -> None:
    """At 1e7 s a clock counts in steps of 2e-9 s, so that 49 s are 4e-11 of themselves too short or too long."""
    jobs = [job_row(f"j{k}", 1, 49.0 + k / 7, at=1e7 + 13.7 * k) for k in range(20)]
    run = simulate(jobs, "1x2", "fifo", executor=executor)
    assert run.summary["completed"] == 20
    assert not run.incidents


@pytest.mark.parametrize("admission", ["quota:user=1", "load-limit:0.4", "quota:queue=1"])
@pytest.mark.parametrize("latency", [0.0, 7.0])
def test_who_is_kept_out_enters_when_the_others_have_left(admission: str, latency: float) -> None:
    jobs = [job_row("a", 1, 30, user="u"), job_row("b", 1, 30, user="u"), job_row("c", 1, 45, at=5, user="u")]
    how: dict[str, Any] = {"round": 60, "admission": admission, "latency": latency}
    instant, acknowledged = (simulate(jobs, "1x2", "fifo", executor=name, **how) for name in ("instant", "acknowledged"))
    assert instant.summary["completed"] == acknowledged.summary["completed"] == 3
    assert instant.summary["log_hash"] == acknowledged.summary["log_hash"]


@dataclass(frozen=True)
class Swap(OrderPolicy):
    """Whoever runs goes behind whoever waits, in every round."""

    name: ClassVar[str] = "swap"
    preempt: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        return snapshot.jobs.running.astype(np.float64)


@pytest.mark.parametrize("policy", ["gandiva", Swap()])
@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
def test_changes_that_take_a_whole_round_are_given_up_with_the_reason(policy: Any, executor: str) -> None:
    jobs = [job_row("a"), job_row("b")]
    run = simulate(jobs, "1x1", policy, round=60, costs="60", executor=executor)
    assert run.summary["unfinished"] == 2
    assert "none of them does any work: changes take as long as jobs are left alone" in run.incidents[-1]
    assert simulate(jobs, "1x1", policy, round=60, costs="50", executor=executor).summary["completed"] == 2


@dataclass(frozen=True)
class Trials(Policy):
    """Every job is tried out for so long, again and again."""

    name: ClassVar[str] = "trials"
    seconds: float = 10.0

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(one, limit=self.seconds, purpose="profile") for one in range(len(snapshot.jobs))])


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
def test_a_job_whose_runs_reach_their_limit_before_they_have_started_is_told_of_at_once_and_ends(executor: str) -> None:
    jobs = [job_row("a"), job_row("b")]
    run = simulate(jobs, "1x2", Trials(), costs="start=30,resume=20", executor=executor)
    first, *_, last = run.incidents
    assert "t=10, decision 2: the plan lets job 'a' run for 10 s, its limit, and its start alone takes 30 s" in first
    assert "the plan lets job 'b' run for 10 s, its limit, and its start alone takes 20 s: the job ends after 3 runs without work" in last
    assert (len(run.incidents), run.summary["completed"], run.summary["end"]) == (4, 0, 30.0)
    assert simulate(jobs, "1x2", Trials(35.0), costs="start=30,resume=20", executor=executor).summary["completed"] == 2


@dataclass(frozen=True)
class TrialsBesideWork(Trials):
    """The same, while the first job has no limit."""

    def decide(self, snapshot: Snapshot) -> Plan:
        limits = [math.inf if name == "works" else self.seconds for name in snapshot.jobs.ids]
        return Plan.assign([Assignment(one, limit=limit) for one, limit in enumerate(limits)])


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
def test_it_ends_while_another_job_works(executor: str) -> None:
    run = simulate([job_row("works", 1, 5000), job_row("tried")], "1x2", TrialsBesideWork(), costs="30", executor=executor)

    assert run.jobs["finish"].to_list()[0] == 5030.0
    assert run.jobs["restarts"].to_list() == [0, 2]
    assert [one.split("job ")[1].split(" run")[0] for one in map(str, run.incidents)] == ["'tried'", "'tried'"]
