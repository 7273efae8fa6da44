"""Nodes that fail, drain, return and join, and what becomes of the gangs on them."""

from __future__ import annotations

import math

import pytest
from tests.engine.states import commit, engine_of
from tests.jobs import gangs
from tests.oracles.books import check_books

from gantline.core.cluster import Node
from gantline.core.columns import DOWN, FREE, Device, Job
from gantline.core.columns import Node as NodeColumn
from gantline.core.errors import GantlineError
from gantline.core.inputs import Action, JobRequest, NodeEvent
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Mode, Part
from gantline.core.snapshot import tables_behind
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.engine.engine import Engine
from gantline.engine.gang import settle
from gantline.engine.node_changes import drain_node, join_node, lose_node

A, B, C = 0, 1, 2


def lose(engine: Engine, node: int, at: float) -> list[int]:
    engine.state.now = at
    lost = lose_node(engine.grants, node)
    assert check_books(engine.state, engine.grants) == []
    return lost


def facts(engine: Engine, row: int) -> tuple[float, float]:
    """(work kept, work lost)"""
    F = engine.state.tables.F
    return float(F[Job.DONE, row]), float(F[Job.LOST, row])


# --- one device -----------------------------------------------------------------------------------------------------------
def test_a_device_that_is_cordoned_is_kept_by_whom_has_it_and_had_by_nobody_else() -> None:
    engine = engine_of(gangs(1, 1, 2), "2x2")
    commit(engine, [Assignment(A, devices=(0,))])
    t = engine.state.tables
    for device in ("node0:0", "node0:1"):
        engine.apply(NodeEvent(0.0, device, "drain"))
    assert t.D[Device.HOLDER].tolist() == [A, DOWN, FREE, FREE]
    assert check_books(engine.state, engine.grants) == []
    again = decode_snapshot(encode_snapshot(engine.state.snapshot()))
    assert tables_behind(again).cordoned == {0, 1}
    assert tables_behind(again).D[Device.HOLDER].tolist() == t.D[Device.HOLDER].tolist()
    assert tables_behind(again).NI[NodeColumn.FREE].tolist() == t.NI[NodeColumn.FREE].tolist() == [0, 2]
    engine.apply(JobRequest(0.0, Action.REQUEUE, "j0"))
    engine.decide()
    assert t.D[Device.HOLDER].tolist() == [DOWN, DOWN, FREE, FREE], "free between two decisions: out of use before the next"
    engine.apply(NodeEvent(0.0, "node0", "drain"))
    engine.apply(NodeEvent(0.0, "node0", "up"))
    assert t.NI[NodeColumn.FREE].tolist() == [0, 2], "a node that comes back brings no device that was cordoned by itself"
    engine.apply(NodeEvent(0.0, "node0:1", "up"))
    assert t.D[Device.HOLDER].tolist() == [DOWN, FREE, FREE, FREE]
    assert check_books(engine.state, engine.grants) == []
    for name, kind, told in (
        ("node0:2", "drain", "no device 'node0:2'"),
        ("node9:0", "drain", "no node"),
        ("node0:1", "down", "cannot go"),
    ):
        with pytest.raises(GantlineError, match=told):
            engine.inputs.check(NodeEvent(0.0, name, kind))


@pytest.mark.parametrize("change", ["down", "drain"])
def test_a_cordoned_device_of_a_node_that_is_out_of_use_counts_once(change: str) -> None:
    """Both devices of the first node are cordoned, then the node goes: the other node is left, neither more nor less."""
    engine = engine_of(gangs(1, 2), "2x2")
    commit(engine, [Assignment(A, devices=(0,))])
    back = 3 if change == "drain" else 2  # the gang on the first device goes on while its node drains
    for name, kind, left in (("node0:1", "drain", 3), ("node0:0", "drain", 3), ("node0", change, 2), ("node0", "up", back)):
        engine.apply(NodeEvent(0.0, name, kind))
        cluster = engine.state.snapshot().cluster
        assert (cluster.capacity.tolist(), cluster.gpus) == ([left], left), f"after {kind} {name}"
        assert check_books(engine.state, engine.grants) == []


# --- failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "kept"),
    [(0.0, 100.0), (30.0, 90.0), (100.0, 100.0), (101.0, 0.0), (math.inf, 0.0)],
    ids=["always safe", "every 30 s", "just saved", "not yet", "only when stopped"],
)
def test_work_since_the_last_checkpoint_is_lost(interval: float, kept: float) -> None:
    engine = engine_of(gangs(1), "1x1", checkpoint=interval)
    commit(engine, [Assignment(A)])
    lose(engine, 0, at=100.0)

    assert facts(engine, A) == pytest.approx((kept, 100.0 - kept))


def test_checkpoints_are_counted_from_first_progress_although_the_speed_changed() -> None:
    engine = engine_of(gangs(1, 1), "1x1", checkpoint=40.0)
    pair = [Assignment(k, group=0, mode=Mode.SPACE) for k in (A, B)]
    commit(engine, pair[:1])
    commit(engine, pair, at=50.0)  # half speed from here
    lose(engine, 0, at=90.0)

    assert facts(engine, A) == pytest.approx((65.0, 5.0))  # saved at 40 and at 80: 50 + 30 / 2
    assert facts(engine, B) == pytest.approx((20.0, 0.0))  # saved at 90


def test_a_save_before_the_speed_changed_is_not_forgotten() -> None:
    engine = engine_of(gangs(1, 1), "1x1", checkpoint=40.0)
    pair = [Assignment(k, group=0, mode=Mode.SPACE) for k in (A, B)]
    commit(engine, pair[:1])
    commit(engine, pair, at=50.0)
    lose(engine, 0, at=70.0)

    assert facts(engine, A) == pytest.approx((40.0, 20.0))


def test_moving_and_resizing_save() -> None:
    engine = engine_of(gangs(1), "2x2", checkpoint=1000.0)
    commit(engine, [Assignment(A, devices=(0,))])
    commit(engine, [Assignment(A, devices=(0, 1))], at=30.0)
    commit(engine, [Assignment(A, devices=(2, 3))], at=40.0)
    lose(engine, 1, at=45.0)

    assert facts(engine, A) == pytest.approx((30.0 + 20.0, 10.0))


def test_everybody_who_shares_a_device_of_the_node_falls_and_no_one_else() -> None:
    engine = engine_of(gangs(2, 1, 1), "2x1", checkpoint=1000.0)
    group = [Assignment(A, devices=(0, 1)), Assignment(B, devices=(1,)), Assignment(C, devices=(0,))]
    commit(engine, [Assignment(a.job, devices=a.devices, group=0, mode=Mode.SPACE) for a in group])
    assert lose(engine, 1, at=10.0) == [A, B]

    t = engine.state.tables
    assert t.I[Job.PHASE].tolist() == [Phase.PENDING, Phase.PENDING, Phase.RUNNING]
    assert t.F[Job.RATE, C] == 1.0  # its mate is gone
    assert t.F[Job.DUE, C] == pytest.approx(10.0 + 995.0)


def test_a_grant_with_parts_falls_with_any_of_its_nodes() -> None:
    engine = engine_of(gangs(1), "gpu:1x2/4c,cpu:1x0/8c")
    commit(engine, [Assignment(A, parts=(Part("ps", 1, 1, gpus=0, cpus=2.0), Part("worker", 0, 2, cpus=1.0)))])
    assert lose(engine, 1, at=10.0) == [A]

    assert engine.state.tables.NF[NodeColumn.CPUS].tolist() == [4.0, 8.0]


# --- drain, return, join -----------------------------------------------------------------------------------------------


def test_on_a_node_that_drains_a_gang_may_shrink_share_and_change_its_cpus_but_not_grow() -> None:
    engine = engine_of(gangs(2, 1, cpus=2.0), "1x4/8c")
    commit(engine, [Assignment(A)])
    drain_node(engine.state, 0)
    commit(engine, [Assignment(A, cpus=1.0)], at=1.0)
    assert engine.state.tables.NF[NodeColumn.CPUS, 0] == pytest.approx(7.0)
    commit(engine, [Assignment(A, gpus=3)], at=2.0)
    assert engine.grants.devices(A) == (0, 1)
    commit(engine, [Assignment(A, group=0, mode=Mode.SPACE)], at=3.0)
    commit(engine, [Assignment(A, gpus=1)], at=4.0)
    assert engine.grants.devices(A) == (0,)
    assert engine.state.tables.D[Device.HOLDER].tolist() == [A, DOWN, DOWN, DOWN]


def test_a_joining_node_is_used_and_nobody_is_disturbed() -> None:
    engine = engine_of(gangs(2, 2), "1x2")
    commit(engine, [Assignment(A), Assignment(B)])
    assert join_node(engine.state, Node("new", "gpu", gpus=2, cpus=4.0)) == 1
    commit(engine, [Assignment(A, within="node"), Assignment(B)], at=10.0)

    assert (engine.grants.devices(A), engine.grants.devices(B)) == ((0, 1), (2, 3))


def test_settling_often_does_not_move_checkpoints() -> None:
    engine = engine_of(gangs(1), "1x1", checkpoint=30.0)
    commit(engine, [Assignment(A, fraction=1.0, batch=32)])
    t = engine.state.tables
    for at in (7.0, 31.0, 44.0):
        commit(engine, [Assignment(A, fraction=0.5 if at == 31.0 else 1.0, group=0, mode=Mode.SPACE)], at=at)
    before = float(t.F[Job.DONE, A] + t.F[Job.RATE, A] * (70.0 - t.F[Job.SINCE, A]))
    lose(engine, 0, at=70.0)
    settle(t.F, t.I, A, 70.0)

    assert facts(engine, A)[0] == pytest.approx(31.0 + 6.5 + 16.0)  # the save at 60
    assert sum(facts(engine, A)) == pytest.approx(before)
