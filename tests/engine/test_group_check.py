"""Groups that can never be committed are refused in words, and nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.states import engine_of
from tests.probes.scenario import every, job

from gantline import Assignment, Mode, Plan, Policy, Snapshot, simulate
from gantline.core.plan import Assignments, Part
from gantline.engine.plan_check import InfeasiblePlanError, check_groups
from gantline.engine.regime import Regime

JOBS = [job("wide", 2), job("slim", 1), job("third", 2)]
WORKER = (Part("worker", 0, 2),)


def refusal(rows: list[Assignment], **regime: Any) -> str:
    """What is said of a plan; empty: it is taken."""
    snapshot = engine_of(JOBS, "1x8").state.snapshot()
    try:
        check_groups(snapshot, Assignments.of(rows), Regime(**regime))
    except InfeasiblePlanError as error:
        return str(error)
    return ""


def members(*jobs: int, **more: Any) -> list[Assignment]:
    return [Assignment(k, group=7, **{"mode": Mode.SPACE, **more}) for k in jobs]


def test_members_of_one_group_with_different_modes() -> None:
    told = refusal([*members(0), *members(1, mode=Mode.TIME)])

    assert "group 7 has members of different modes: job 'wide' SPACE and job 'slim' TIME" in told
    assert refusal(members(0, 1)) == refusal([Assignment(0, group=6), *members(1)]) == ""


def test_a_job_in_two_groups() -> None:
    rows = [Assignment(0, group=1, mode=Mode.TIME, share=0.5), Assignment(0, group=2, mode=Mode.TIME, share=0.5)]

    assert "job 'wide' is in several groups (1, 2), of mode TIME" in refusal(rows)
    shares = [Assignment(0, group=1, mode=Mode.SPACE, share=0.5), Assignment(0, group=2, mode=Mode.SPACE, share=0.5)]
    assert refusal(shares) == ""  # packed pairs of an ideal mechanism


def test_a_share_of_the_time_in_turns() -> None:
    told = refusal([Assignment(0, share=0.5, turns=1), Assignment(1)])

    assert "job 'wide' takes turns and has a share of the time on no device in particular" in told
    assert refusal([Assignment(0, turns=1), *members(1, turns=1)]) == ""


def test_parts_in_a_group() -> None:
    assert "job 'wide' has parts and shares devices in mode SPACE" in refusal(members(0, parts=WORKER))
    assert refusal([Assignment(0, parts=WORKER)]) == ""


def test_a_group_that_starts_together_in_part() -> None:
    told = refusal([*members(0, together=True), *members(1)])

    assert "group 7 starts together, and its member job 'slim' does not say so" in told
    assert "job 'slim' is to start together and is in no group" in refusal([Assignment(1, together=True)])
    assert refusal(members(0, 1, together=True)) == ""


def test_unequal_sizes_where_the_regime_forbids_them() -> None:
    assert "group 7 has members of unequal sizes: job 'wide' 2 and job 'slim' 1 GPUs" in refusal(members(0, 1), equal_sizes=True)
    assert refusal(members(0, 1)) == refusal(members(0, 2), equal_sizes=True) == refusal(members(0, 1, gpus=1), equal_sizes=True) == ""


def test_fractions_above_what_the_regime_allows() -> None:
    told = refusal(members(0, 2, fraction=0.7), most_asked=1.25, name="small")

    assert "group 7 asks for 1.4 of each device, and regime 'small' allows 1.25" in told
    assert refusal(members(0, 2, fraction=0.7)) == refusal(members(0, 2, fraction=0.5), most_asked=1.0) == ""


class NoSuchOption(Policy):
    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, option=5) for k in range(len(snapshot.jobs))])


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (every(group=0, mode=Mode.SPACE, parts=WORKER), "job 'wide' has parts and shares devices"),
        (NoSuchOption(), "cannot give job 'wide' and 1 more"),
    ],
)
def test_a_run_whose_plans_can_never_be_committed_says_so(policy: Policy, words: str) -> None:
    run = simulate(JOBS[:2], "1x8", policy)

    assert run.summary["completed"] == 0
    assert any(words in incident for incident in run.incidents)
