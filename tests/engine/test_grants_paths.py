"""Commits of gangs of their own, against the plainest code: the same books, whatever plans come after each other."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.states import commit, engine_of
from tests.oracles.books import check_books
from tests.oracles.one_by_one import OneByOne

from gantline.core.columns import Device, Job
from gantline.core.facts import Costs
from gantline.core.plan import Assignment, Assignments, Plan
from gantline.engine.commit import commit as commit_module
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.commit.place_or_restore import PlanChanges
from gantline.engine.engine import Engine

JOBS = 6
WISH = st.tuples(st.integers(0, JOBS - 1), st.integers(-1, 2), st.sampled_from([-1, -1, 1, 2, 3, 5]), st.sampled_from([np.inf, 25.0]))


DEVICES = st.builds(lambda first, size: tuple(range(first, first + size)), st.integers(0, 12), st.integers(1, 3))  # of one type, mostly
STARTS = st.dictionaries(st.integers(0, JOBS - 1), st.tuples(st.integers(-1, 2), DEVICES), min_size=1, max_size=2)


def twins(placement: str, gpus: list[int], min_run: float, checkpoint: float) -> tuple[Engine, Engine]:
    rows = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": g, "duration": 1000.0, "options": f"a:{g}/{g}=1000|b:{g}=500|cpu:0/3=4000"}
        for k, g in enumerate(gpus)
    ]
    costs = Costs(start=1.0, resume=2.0, resize=3.0, move=4.0, checkpoint=checkpoint, doubling=0.5)
    first, second = (
        engine_of(rows, "a:3x3/8c,b:2x2/4c,cpu:1x0/8c", placement=placement, costs=costs, min_run=min_run, checkpoint=checkpoint)
        for _ in range(2)
    )
    return first, second


@settings(max_examples=3 * settings().max_examples)
@given(
    placement=st.sampled_from(["first-free", "consolidated", "consolidated:preferred"]),
    gpus=st.lists(st.integers(1, 4), min_size=JOBS, max_size=JOBS),
    plans=st.lists(st.lists(WISH, unique_by=lambda request: request[0], max_size=JOBS), max_size=6),
    min_run=st.sampled_from([0.0, 15.0]),
    checkpoint=st.sampled_from([0.0, 7.0]),
)
def test_both_ways_give_the_same_devices_speeds_times_and_reasons(
    placement: str, gpus: list[int], plans: list[list[tuple[int, int, int, float]]], min_run: float, checkpoint: float
) -> None:
    both = twins(placement, gpus, min_run, checkpoint)
    for step, plan in enumerate(plans):
        commit_both(both, step, [Assignment(job, option, gpus=size, until=until) for job, option, size, until in plan])
    assert both[0].state.log.hash() == both[1].state.log.hash()


@settings(max_examples=3 * settings().max_examples)
@given(
    named=st.booleans(),
    gpus=st.lists(st.integers(1, 3), min_size=JOBS, max_size=JOBS),
    plans=st.lists(st.tuples(st.integers(0, 7), STARTS, st.sampled_from([-1, -1, -1, 0, 1])), max_size=8),
    min_run=st.sampled_from([0.0, 15.0]),
)
def test_plans_that_only_name_options_or_only_devices_are_no_exception(
    named: bool, gpus: list[int], plans: list[tuple[int, dict[int, tuple[int, tuple[int, ...]]], int]], min_run: float
) -> None:
    """Mostly somebody starts beside those who keep what they have, sometimes others stop, change or are locked."""
    both, wanted = twins("first-free", gpus, min_run, 0.0), {}
    for step, (more, starts, locked) in enumerate(plans):
        wanted = {**wanted, **starts} if more else starts  # seldom everybody else stops
        rows = [Assignment(job, devices=devices) if named else Assignment(job, option) for job, (option, devices) in wanted.items()]
        commit_both(both, step, rows)
        for engine in both if locked >= 0 else ():
            engine.state.tables.I[Job.LOCKED, locked] ^= 1
    assert both[0].state.log.hash() == both[1].state.log.hash()
    one, other = (repr(sorted(engine.grants.by_row.items(), key=lambda row: row[0])) for engine in both)
    assert one == other  # NaN stands for what is not said, and equals nothing


def commit_both(both: tuple[Engine, Engine], step: int, rows: list[Assignment]) -> None:
    """The same plan for both, one row after the other for the second; their tables agree then."""
    usual, plain = both
    for engine in both:
        engine.state.now, engine.state.decision = 10.0 * step, step
    usual.commit(Plan.assign(rows))
    with patch.object(commit_module, "PlanChanges", OneByOne):
        commit_assignments(plain.grants, plain.state.rows, Assignments.of(rows))
    ours, theirs = plain.state.tables, usual.state.tables
    np.testing.assert_array_equal(ours.D[Device.HOLDER], theirs.D[Device.HOLDER])
    np.testing.assert_array_equal(ours.NI, theirs.NI)
    np.testing.assert_allclose(ours.NF, theirs.NF)
    np.testing.assert_array_equal(ours.I[:, :JOBS], theirs.I[:, :JOBS])
    np.testing.assert_allclose(ours.F[:, :JOBS], theirs.F[:, :JOBS])
    assert plain.state.out.tolist() == usual.state.out.tolist()
    assert check_books(usual.state, usual.grants) == []


def test_another_option_of_the_same_shape_changes_the_speed() -> None:
    engine = engine_of([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 100.0, "options": "gpu:1=100|gpu:1=50"}], "1x1")
    F = engine.state.tables.F
    for at, option in ((0.0, 0), (10.0, 1)):
        engine.state.now = at
        commit_assignments(engine.grants, engine.state.rows, Assignments.of([Assignment(0, option)]))
    assert F[Job.DUE, 0] == pytest.approx(10.0 + 90.0 / 2)  # ten of a hundred seconds done, the rest twice as fast
    assert F[Job.DONE, 0] == pytest.approx(10.0)


def test_who_keeps_what_it_has_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 1000.0} for k in range(8)]
    engine = engine_of(rows, "2x4")
    kinds = {
        "gang": Assignment(0), "batch": Assignment(1, batch=64), "exact": Assignment(2, devices=(6,)),
        "pair": Assignment(3, group=7, mode=2, share=0.5), "pair too": Assignment(4, group=7, mode=2, share=0.5),
        "node": Assignment(5, nodes=(0,)),
    }  # fmt: skip
    commit(engine, list(kinds.values()), at=0.0)
    looked = []
    usual = PlanChanges.__init__

    def noted(changes: PlanChanges, grants: Any, rows: Any, table: Any, asked: Any, places: Any) -> None:
        looked.extend(rows[places].tolist())
        usual(changes, grants, rows, table, asked, places)

    monkeypatch.setattr(PlanChanges, "__init__", noted)
    commit(engine, [*list(kinds.values())[::-1], Assignment(6)], at=5.0)
    assert looked == [6]
    assert engine.state.out.tolist() == [1, 0]


def test_a_lease_that_becomes_longer_is_noticed() -> None:
    engine = engine_of([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 1000.0}], "1x1")
    until = np.array([500.0])
    for at, end in enumerate((500.0, 500.0, 500.0, 600.0)):
        until[0] = end
        commit(engine, Assignments(np.arange(1), until=until), at=float(at))
        assert engine.state.tables.F[Job.UNTIL, 0] == end
