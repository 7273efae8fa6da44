"""Committing grants: gangs whole or not at all, and what is refused is as if it had not been asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.engine.states import commit, engine_of
from tests.jobs import gangs

from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Assignments, Mode, Part, Plan
from gantline.core.reasons import Reason
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.engine import Engine

A, B, C = 0, 1, 2


def reason(engine: Engine, row: int) -> Reason:
    return Reason(int(engine.state.tables.I[Job.REASON, row]))


def held(engine: Engine, row: int) -> tuple[int, ...]:
    return engine.grants.devices(row)


def running(engine: Engine, row: int) -> bool:
    return bool(engine.state.tables.I[Job.PHASE, row] == Phase.RUNNING)


# --- refusals ---------------------------------------------------------------------------------------------------------------
MEANINGLESS = {
    "a device that does not exist": Assignment(A, devices=(0, 99)),
    "a device twice": Assignment(A, devices=(1, 1)),
    "devices of two types": Assignment(A, devices=(0, 4)),
    "fewer devices than it says": Assignment(A, gpus=2, devices=(0,)),
    "an option it does not have": Assignment(A, option=7),
    "a type that does not exist": Assignment(A, type=9),
    "a type it has no option for": Assignment(A, type=2, gpus=2),
    "a gang of nobody": Assignment(A, gpus=0),
    "a node that does not exist": Assignment(A, nodes=(17,)),
    "a level that does not exist": Assignment(A, within="continent"),
    "no part of a device": Assignment(A, fraction=0.0, group=0, mode=Mode.SPACE),
    "more than all of a device": Assignment(A, fraction=1.5, group=0, mode=Mode.SPACE),
    "no share of the time": Assignment(A, share=0.0),
    "fewer CPUs than none": Assignment(A, cpus=-1.0),
    "a lease until nobody knows when": Assignment(A, until=math.nan),
    "a run without length": Assignment(A, limit=0.0),
    "a share of certain devices": Assignment(A, share=0.5, devices=(0, 1)),
    "parts and devices": Assignment(A, devices=(0, 1), parts=(Part("worker", 0, 2),)),
    "two parts of one role": Assignment(A, parts=(Part("worker", 0, 1), Part("worker", 0, 1))),
    "parts of nobody": Assignment(A, parts=(Part("worker", 0, 0),)),
    "parts of an unknown type": Assignment(A, parts=(Part("worker", 8, 1),)),
    "parts that share": Assignment(A, group=0, mode=Mode.SPACE, parts=(Part("worker", 0, 1),)),
}


@pytest.mark.parametrize("asked", MEANINGLESS.values(), ids=MEANINGLESS.keys())
def test_what_cannot_be_meant_is_refused_with_a_reason(asked: Assignment) -> None:
    engine = engine_of(gangs(2, 1, type="gpu"), "gpu:1x4/8c,v100:1x4,cpu:1x0/8c")
    commit(engine, [asked, Assignment(B)])

    assert reason(engine, A) is Reason.INFEASIBLE
    assert not running(engine, A)
    assert running(engine, B)  # the others are untouched


@pytest.mark.parametrize("asked", MEANINGLESS.values(), ids=MEANINGLESS.keys())
def test_a_gang_that_runs_does_not_lose_its_place_to_a_meaningless_row(asked: Assignment) -> None:
    engine = engine_of(gangs(2, 1, type="gpu"), "gpu:1x4/8c,v100:1x4,cpu:1x0/8c")
    commit(engine, [Assignment(A), Assignment(B)])
    commit(engine, [asked, Assignment(B)], at=10.0)

    assert held(engine, A) == (0, 1)
    assert engine.state.tables.I[Job.RESTARTS, A] == 0


def test_a_share_and_the_gang_that_held_its_type_do_not_both_get_it() -> None:
    engine = engine_of(gangs(1, 1), "1x1")
    commit(engine, [Assignment(A)])
    commit(engine, [Assignment(A), Assignment(B, share=0.5)], at=10.0)

    assert running(engine, A)
    assert reason(engine, B) is Reason.RESOURCES


def test_what_a_commit_did_is_counted_for_shares_of_the_time_too() -> None:
    engine = engine_of(gangs(1, 1), "1x1")
    commit(engine, [Assignment(A, share=0.5), Assignment(B, share=0.5)])
    assert engine.state.out.tolist() == [2, 0]
    commit(engine, [Assignment(A, share=0.5)], at=10.0)
    assert engine.state.out.tolist() == [0, 1]


def test_devices_beside_a_share_are_given_up_to_the_last_one() -> None:
    """Half of the time of two devices is worth one: of four, three are left for a gang, and no fourth is."""
    for devices, runs in (((1, 2, 3), True), ((0, 1, 2, 3), False)):
        engine = engine_of(gangs(2, len(devices)), "1x4")
        commit(engine, [Assignment(A, share=0.5)])
        commit(engine, [Assignment(A, share=0.5), Assignment(B, devices=devices)], at=10.0)
        assert running(engine, A)
        assert running(engine, B) is runs


def test_who_is_not_in_the_plan_knows_why_it_waits() -> None:
    engine = engine_of(gangs(1, 1), "1x2")
    commit(engine, [Assignment(A, within="node")])

    assert reason(engine, B) is Reason.DEFERRED


# --- groups --------------------------------------------------------------------------------------------------------------
def pair(first: int, second: int, **more: Any) -> list[Assignment]:
    return [Assignment(k, group=0, mode=Mode.SPACE, **more) for k in (first, second)]


def test_turns_follow_their_shares() -> None:
    engine = engine_of(gangs(1, 1), "1x1")
    rows = [Assignment(A, group=0, mode=Mode.TIME, share=0.75), Assignment(B, group=0, mode=Mode.TIME, share=0.25)]
    commit(engine, rows)

    assert engine.state.tables.F[Job.RATE].tolist() == pytest.approx([0.75, 0.25])
    commit(engine, [Assignment(A, group=0, mode=Mode.TIME, share=1.0), rows[1]], at=10.0)
    assert engine.state.tables.F[Job.RATE].tolist() == pytest.approx([0.8, 0.2])  # more than all is divided in proportion


# --- the ranking form after grants --------------------------------------------------------------------------------------
def test_a_ranking_gives_everybody_a_gang_of_its_own_again() -> None:
    engine = engine_of(gangs(1, 1, 1), "1x2")
    commit(engine, [*pair(A, B), Assignment(C, devices=(1,))])
    engine.state.now = 10.0
    engine.commit(Plan.rank(np.array([0.0, 1.0, 2.0])))

    assert [running(engine, k) for k in range(3)] == [True, True, False] or [running(engine, k) for k in range(3)] == [True, False, True]
    assert not engine.grants


def test_a_share_of_the_time_has_a_lease_too() -> None:
    told = {"arrival": 0.0, "gpus": 1, "duration": 1000.0, "options": "a:1=1000|b:1=500"}
    engine = engine_of([{"job": "a", **told}], "a:1x1,b:1x1")
    commit(engine, [Assignment(0, 0, share=0.5, until=50.0), Assignment(0, 1, share=0.5, until=50.0)])
    assert engine.state.tables.F[Job.UNTIL, 0] == 50.0


def test_another_option_of_the_same_shape_changes_the_speed() -> None:
    engine = engine_of([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 100.0, "options": "gpu:1=100|gpu:1=50"}], "1x1")
    F = engine.state.tables.F
    for at, option in ((0.0, 0), (10.0, 1)):
        engine.state.now = at
        commit_assignments(engine.grants, engine.state.rows, Assignments.of([Assignment(0, option)]))
    assert F[Job.DUE, 0] == pytest.approx(10.0 + 90.0 / 2)  # ten of a hundred seconds done, the rest twice as fast
    assert F[Job.DONE, 0] == pytest.approx(10.0)


def test_a_lease_that_becomes_longer_is_noticed() -> None:
    engine = engine_of([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 1000.0}], "1x1")
    until = np.array([500.0])
    for at, end in enumerate((500.0, 500.0, 500.0, 600.0)):
        until[0] = end
        commit(engine, Assignments(np.arange(1), until=until), at=float(at))
        assert engine.state.tables.F[Job.UNTIL, 0] == end
