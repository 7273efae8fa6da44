"""Gangs that share, compiled and one by one: two ways to the same books, for whatever plans name groups, devices, CPUs and turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.states import columns_of, engine_of
from tests.oracles.books import check_books

from gantline.core.columns import DEVICE_MEMORY, SHARED, Device, Job
from gantline.core.facts import Costs
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Assignments, Mode, Plan
from gantline.core.reasons import Reason
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.commit.shown_gangs import ColumnsOfGrants, ColumnsOfPlans
from gantline.engine.engine import Engine

JOBS, DEVICES = 8, 9


def twins(gpus: list[int], min_run: float, checkpoint: float, memory: float = 0.0) -> tuple[Engine, Engine]:
    """Two engines alike; with `memory`, devices have some, and jobs need up to so many GB of it."""
    rows = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": g, "duration": 1e4, "options": f"a:{g}/{g}=10000|b:{g}=5000"} for k, g in enumerate(gpus)
    ]
    costs = Costs(start=1.0, resume=2.0, resize=3.0, move=4.0, switch=0.5, checkpoint=checkpoint, doubling=0.5)
    cluster = "a:2x3/6c/32d,b:1x3/4c/16d" if memory else "a:2x3/6c,b:1x3/4c"
    one, other = (engine_of(rows, cluster, costs=costs, min_run=min_run, checkpoint=checkpoint) for _ in range(2))
    for engine in (one, other) if memory else ():
        engine.state.tables.metric(DEVICE_MEMORY)[:] = [memory / (1 + k % 3) for k in range(JOBS)]
    return one, other


EVENTS = st.sampled_from(["", "", "", "", "0 drain", "0 down", "0 up", "1:1 drain", "1:1 up"])  # what happens to a node, or a device of it
EVERYTHING = ("group", "group", "open", "exact", "group exact", "plain", "cpus")
AS_COLUMNS = ("space", "stage", "guest", "guest", "own", "link")  # what is compared and committed without looking at single rows
BY_TURNS = [1, 2] * (JOBS // 2)  # the sizes for which these ask


# Strategies are made once: to make one costs more than to draw from it.
KINDS = {kinds: st.sampled_from(kinds) for kinds in (EVERYTHING, AS_COLUMNS)}
GROUP, ONE_OF_EACH, FIRST = st.integers(0, 2), st.booleans(), st.integers(0, 4)
NAMED = {unique: st.lists(st.integers(0, DEVICES), min_size=1, max_size=3, unique=unique) for unique in (False, True)}
FRACTION, CPUS = st.sampled_from([1.0, 0.5, 0.3]), st.sampled_from([np.nan, np.nan, 1.0, 3.0])
OPTION, TURNS = st.sampled_from([-1, -1, 0, 1, 2]), st.sampled_from([-1, 0, 4])  # in turns with no other gang, or with those of a group
CHOSEN = st.lists(st.integers(0, JOBS - 1), unique=True, max_size=JOBS)


@st.composite
def wish(draw: st.DrawFn, job: int, kinds: tuple[str, ...]) -> Assignment:
    """What one job gets: a group, named devices, both, or a place of its own."""
    kind = draw(KINDS[kinds])
    group = draw(GROUP)
    mode = (Mode.SPACE, Mode.TIME, Mode.INTERLEAVE)[group]
    devices = tuple(draw(NAMED[draw(ONE_OF_EACH)]))
    few = tuple(range(at := draw(FIRST), at + 1 + job % 2))
    more: dict[str, Any] = {"fraction": draw(FRACTION), "share": 1.0 if mode != Mode.TIME else 0.5}
    cpus, option, turns = draw(CPUS), draw(OPTION), draw(TURNS)
    found = {
        "group": Assignment(job, option, group=group, mode=mode, together=group == 2, cpus=cpus, **more),
        "open": Assignment(job, devices=devices, mode=Mode.SPACE, fraction=0.5, turns=turns),
        "exact": Assignment(job, devices=devices, cpus=cpus, turns=turns),
        "group exact": Assignment(job, devices=devices, group=group + 3, mode=mode, offset=0.5 * job, **more),
        "plain": Assignment(job, option),
        "cpus": Assignment(job, cpus=cpus),
        "space": Assignment(job, group=6 + 2 * group + job % 2, mode=Mode.SPACE, fraction=more["fraction"]),
        "stage": Assignment(job, group=12 + 2 * group + job % 2, mode=Mode.INTERLEAVE, offset=0.5 * (job // 4), together=group == 2),
        "guest": Assignment(job, devices=few, mode=Mode.SPACE, fraction=0.5),
        "own": Assignment(job, devices=few),
        "link": Assignment(job, devices=few, group=18 + group, mode=Mode.INTERLEAVE, offset=0.5 * job),
    }
    return found[kind]


WISHES = {kinds: [wish(job, kinds) for job in range(JOBS)] for kinds in KINDS}


@st.composite
def plans(draw: st.DrawFn, kinds: tuple[str, ...] = EVERYTHING) -> list[Assignment]:
    return [draw(WISHES[kinds][job]) for job in draw(CHOSEN)]


@settings(max_examples=3 * settings().max_examples)
@given(
    gpus=st.just(BY_TURNS) | st.lists(st.integers(1, 2), min_size=JOBS, max_size=JOBS),
    story=st.lists(st.tuples(plans() | plans(AS_COLUMNS), st.sampled_from([-1, -1, -1, 0, 1]), EVENTS), min_size=1, max_size=6),
    memory=st.sampled_from([0.0, 0.0, 10.0, 16.0]),  # no more than each device has: ways on smaller ones are left out before a run
    min_run=st.sampled_from([0.0, 0.0, 15.0]),
    checkpoint=st.sampled_from([0.0, 7.0]),
)
def test_both_ways_give_the_same_devices_speeds_times_and_reasons(
    gpus: list[int], story: list[tuple[list[Assignment], int, str]], memory: float, min_run: float, checkpoint: float
) -> None:
    compiled, general = twins(gpus, min_run, checkpoint, memory)
    general.grants.speeds.shown.as_columns = lambda: False  # type: ignore[method-assign]
    general.grants.speeds.shown.set_divided = lambda rows: False  # type: ignore[method-assign]
    for step, (rows, locked, event) in enumerate(story):
        for engine in (compiled, general):
            engine.state.now, engine.state.decision = 10.0 * step, step
            if locked >= 0:
                engine.state.tables.I[Job.LOCKED, locked] ^= 1
            if event:
                name, kind = event.split()
                engine.apply(NodeEvent(10.0 * step, f"{engine.state.tables.cluster.nodes[int(name[0])].name}{name[1:]}", kind))
        compiled.commit(Plan.assign(rows))
        general.state.log.reserve(500, 2000)
        commit_assignments(general.grants, general.state.rows, Assignments.of(rows), slowly=True)
        for ours, theirs in zip(columns_of(compiled), columns_of(general)):
            differ = np.argwhere(~np.isclose(ours, theirs, equal_nan=True))
            assert len(differ) == 0, (step, differ.tolist(), ours[tuple(differ.T)], theirs[tuple(differ.T)])
        assert compiled.state.out.tolist() == general.state.out.tolist()
        assert [compiled.grants.devices(row) for row in range(JOBS)] == [general.grants.devices(row) for row in range(JOBS)]
        assert repr(sorted(compiled.grants.by_row.items())) == repr(sorted(general.grants.by_row.items()))
        assert compiled.state.tables.waits_for_turn == general.state.tables.waits_for_turn
        assert compiled.grants.used_sharing == general.grants.used_sharing
        assert np.array_equal(compiled.state.tables.rate_changes, general.state.tables.rate_changes)  # type: ignore[arg-type]
        assert check_books(compiled.state, compiled.grants) == []
        assert_models_are_shown_what_was_granted(compiled)
    assert compiled.state.log.hash() == general.state.log.hash()


def assert_models_are_shown_what_was_granted(engine: Engine) -> None:
    """What models read as columns is what the grants say one by one."""
    shown, rows = engine.grants.speeds.shown, engine.state.running_rows
    pieces = shown.pieces(rows)
    ours, theirs = pieces.columns, ColumnsOfGrants(shown, rows, list(pieces.grants))
    assert isinstance(ours, ColumnsOfPlans)
    for one, other in ((ours.special, theirs.special), (ours.shared, theirs.shared), (ours.group, theirs.group)):
        assert one.tolist() == other.tolist()
    for name in ("offset", "fraction", "memory_cap"):
        assert ours.asked(name).tolist() == theirs.asked(name).tolist()
    assert [part.tolist() for part in ours.sharers] == [part.tolist() for part in theirs.sharers]
    special = np.flatnonzero(ours.special).tolist()
    assert [ours.mates(at) for at in special] == [theirs.mates(at) for at in special]
    assert rows.tolist() == [] or shown.around(rows).tolist() == sorted(rows.tolist())


PAIRS = [Assignment(k, group=k // 2, mode=Mode.SPACE, together=True) for k in range(JOBS)]
LINKS = [Assignment(k, group=k // 4, mode=Mode.INTERLEAVE, offset=0.5 * k, devices=(k // 2,)) for k in range(0, JOBS, 2)]


@pytest.mark.parametrize(
    ("rows", "devices"),
    [
        (PAIRS, [(k // 2,) for k in range(JOBS)]),
        ([replace(one, limit=50.0) for one in PAIRS], [(k // 2,) for k in range(JOBS)]),
        (LINKS, [(k // 2,) if k % 2 == 0 else () for k in range(JOBS)]),
    ],
)
def test_plans_of_pairs_and_of_shifts_on_links_are_not_committed_one_by_one(rows: list[Assignment], devices: list[tuple[int, ...]]) -> None:
    engine, _ = twins([1] * JOBS, 0.0, 0.0)
    engine.commit(Plan.assign(rows))
    assert engine.grants.slow_commits == 0
    assert [engine.grants.devices(row) for row in range(JOBS)] == devices


def test_members_of_a_group_on_links_share_only_the_devices_that_several_of_them_name() -> None:
    compiled, _ = twins([1] * JOBS, 0.0, 0.0)
    where = [(0,), (0,), (1,), (2,)]
    compiled.commit(Plan.assign([Assignment(k, group=0, mode=Mode.INTERLEAVE, devices=devices) for k, devices in enumerate(where)]))
    assert [compiled.grants.devices(row) for row in range(4)] == where
    assert compiled.state.tables.D[Device.HOLDER, :3].tolist() == [SHARED, 2, 3]


def test_a_guest_for_which_too_little_device_memory_is_left_waits() -> None:
    engine, _ = twins([1] * JOBS, 0.0, 0.0, memory=24.0)  # 24, 12 and 8 GB in turn, and devices of 32

    def guests(*pairs: tuple[int, int]) -> None:
        engine.commit(Plan.assign([Assignment(job, devices=(device,), mode=Mode.SPACE, fraction=0.5) for job, device in pairs]))

    guests((0, 0), (3, 0), (1, 1), (4, 1))
    assert [engine.grants.devices(job) for job in (0, 3, 1, 4)] == [(0,), (), (1,), (1,)]
    assert engine.state.tables.I[Job.REASON, 3] == int(Reason.DEVICE_MEMORY)
    guests((0, 0), (1, 1), (4, 1), (2, 1), (5, 2))
    assert [engine.grants.devices(job) for job in (2, 5)] == [(1,), (2,)]
    assert engine.grants.slow_commits == 1  # only where memory might not suffice
