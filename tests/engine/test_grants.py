"""Committing grants: gangs whole or not at all, and what is refused is as if it had not been asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.engine.states import commit, engine_of
from tests.jobs import gangs

from gantline.core.columns import Device, Job, Node
from gantline.core.facts import Costs
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Mode, Part, Plan
from gantline.core.reasons import Reason
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


def test_devices_that_others_hold_are_not_given() -> None:
    engine = engine_of(gangs(2, 2), "1x4")
    commit(engine, [Assignment(A, devices=(1, 2)), Assignment(B, devices=(2, 3))])

    assert held(engine, A) == (1, 2)
    assert reason(engine, B) is Reason.RESOURCES


def test_a_gang_that_cannot_move_stays_where_it_is() -> None:
    engine = engine_of(gangs(2, 2), "1x4")
    commit(engine, [Assignment(A, devices=(0, 1)), Assignment(B, devices=(2, 3))])
    commit(engine, [Assignment(B), Assignment(A, devices=(2, 3))], at=10.0)

    assert held(engine, A) == (0, 1)
    assert engine.state.tables.I[Job.PREEMPTIONS, A] == 0
    assert engine.state.out.tolist() == [0, 0]


def test_two_gangs_swap_places() -> None:
    engine = engine_of(gangs(2, 2), "1x4", costs=Costs(move=5.0))
    commit(engine, [Assignment(A, devices=(0, 1)), Assignment(B, devices=(2, 3))])
    commit(engine, [Assignment(A, devices=(2, 3)), Assignment(B, devices=(0, 1))], at=10.0)

    assert (held(engine, A), held(engine, B)) == ((2, 3), (0, 1))
    assert engine.state.tables.F[Job.SINCE, [A, B]].tolist() == [15.0, 15.0]


def test_a_gang_whose_old_place_is_taken_and_whose_new_one_is_not_free_stops() -> None:
    engine = engine_of(gangs(2, 2, 2), "1x6")
    commit(engine, [Assignment(A, devices=(0, 1)), Assignment(C, devices=(4, 5))])
    commit(engine, [Assignment(B, devices=(0, 1)), Assignment(C), Assignment(A, devices=(4, 5))], at=10.0)

    assert held(engine, B) == (0, 1)
    assert not running(engine, A)
    assert reason(engine, A) is Reason.RESOURCES
    assert engine.state.tables.F[Job.SAFE, A] == pytest.approx(10.0)  # stopped on purpose: nothing is lost


def test_growth_that_finds_no_room_changes_nothing() -> None:
    engine = engine_of(gangs(2, 1), "1x3", costs=Costs(resize=10.0))
    commit(engine, [Assignment(A), Assignment(B)])
    commit(engine, [Assignment(A, gpus=3), Assignment(B)], at=10.0)

    assert held(engine, A) == (0, 1)
    assert engine.state.tables.F[Job.DUE, A] == pytest.approx(1000.0)


def test_those_who_shrink_make_room_for_those_listed_before_them() -> None:
    engine = engine_of(gangs(3, 2), "1x4")
    commit(engine, [Assignment(A)])
    commit(engine, [Assignment(B), Assignment(A, gpus=2)], at=10.0)

    assert (held(engine, A), held(engine, B)) == ((0, 1), (2, 3))


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


# --- who must not be touched ---------------------------------------------------------------------------------------------
def test_a_locked_gang_stays_whatever_the_plan_says() -> None:
    engine = engine_of(gangs(2, 2), "1x4")
    commit(engine, [Assignment(A, devices=(0, 1))])
    engine.state.tables.I[Job.LOCKED, A] = 1
    for plan in ([], [Assignment(A, devices=(2, 3))], [Assignment(A, gpus=4)], [Assignment(A, share=0.5)]):
        commit(engine, plan, at=engine.state.now + 10.0)
        assert held(engine, A) == (0, 1)


def test_within_its_minimum_run_time_a_gang_is_neither_stopped_nor_moved() -> None:
    engine = engine_of(gangs(2, 2), "1x4", min_run=50.0)
    commit(engine, [Assignment(A, devices=(0, 1))])
    commit(engine, [Assignment(A, devices=(2, 3))], at=10.0)
    assert held(engine, A) == (0, 1)
    commit(engine, [Assignment(B, devices=(0, 1))], at=20.0)
    assert held(engine, A) == (0, 1)
    assert not running(engine, B)
    commit(engine, [Assignment(B, devices=(0, 1))], at=50.0)
    assert held(engine, B) == (0, 1)


def test_who_is_not_in_the_plan_knows_why_it_waits() -> None:
    engine = engine_of(gangs(1, 1), "1x2")
    commit(engine, [Assignment(A, within="node")])

    assert reason(engine, B) is Reason.DEFERRED


# --- groups --------------------------------------------------------------------------------------------------------------
def pair(first: int, second: int, **more: Any) -> list[Assignment]:
    return [Assignment(k, group=0, mode=Mode.SPACE, **more) for k in (first, second)]


def test_strangers_may_not_use_a_shared_device() -> None:
    engine = engine_of(gangs(1, 1, 1), "1x1")
    commit(engine, [*pair(A, B), Assignment(C, devices=(0,), group=1, mode=Mode.SPACE)])

    assert (held(engine, A), held(engine, B)) == ((0,), (0,))
    assert reason(engine, C) is Reason.RESOURCES


def test_a_running_pair_of_strangers_is_brought_together_by_moving_one() -> None:
    engine = engine_of(gangs(1, 1), "1x2")
    commit(engine, [Assignment(A), Assignment(B)])
    commit(engine, pair(A, B), at=10.0)

    assert (held(engine, A), held(engine, B)) == ((0,), (0,))
    assert engine.state.tables.I[Job.RESTARTS, [A, B]].tolist() == [0, 1]


def test_a_pair_is_parted_and_one_stays() -> None:
    engine = engine_of(gangs(1, 1), "1x2")
    commit(engine, pair(A, B))
    commit(engine, [Assignment(A), Assignment(B)], at=10.0)

    assert sorted([held(engine, A), held(engine, B)]) == [(0,), (1,)]
    assert engine.state.tables.D[Device.HOLDER].tolist() in ([A, B], [B, A])


def test_three_slim_members_spread_over_the_devices_of_a_wide_one() -> None:
    engine = engine_of(gangs(2, 1, 1, 1), "1x4")
    commit(engine, [Assignment(k, group=0, mode=Mode.SPACE) for k in range(4)])

    assert [held(engine, k) for k in range(4)] == [(0, 1), (0,), (1,), (0,)]


def test_when_the_wide_member_does_not_fit_the_slim_one_runs() -> None:
    engine = engine_of(gangs(3, 1), "1x3")
    commit(engine, [Assignment(A, gpus=4, group=0, mode=Mode.SPACE), Assignment(B, group=0, mode=Mode.SPACE)])

    assert not running(engine, A)
    assert held(engine, B) == (0,)


def test_members_use_cpus_each_of_its_own() -> None:
    engine = engine_of(gangs(1, 1, 1, cpus=3.0), "1x1/8c")
    commit(engine, [Assignment(k, group=0, mode=Mode.SPACE) for k in range(3)])

    assert [running(engine, k) for k in range(3)] == [True, True, False]
    assert engine.state.tables.NF[Node.CPUS, 0] == pytest.approx(2.0)


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
