"""The engine against a plain one: several types, options with rates and CPUs, costs, trials that fail and must leave no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.against_plain import JOBS, NODES, WAYS, WORK, assert_same, both
from tests.engine.states import engine_of
from tests.examples import MORE
from tests.jobs import gangs, job_row
from tests.oracles.books import check_books
from tests.oracles.plain_walk import Way

from gantline.core.columns import Job
from gantline.core.plan import Assignment, Plan
from gantline.core.reasons import Reason
from gantline.engine.node_changes import drain_node, lose_node, return_node
from gantline.engine.ranks import sort_rows

MANY = st.lists(st.lists(WAYS, min_size=1, max_size=3), min_size=JOBS, max_size=JOBS)
RANKED = st.tuples(st.just("rank"), st.permutations(range(JOBS)))
EXACT = st.one_of(st.none(), st.none(), st.permutations([device for node in NODES for device in node.devices]))
GIVEN = st.tuples(st.integers(0, JOBS - 1), st.integers(0, 2), EXACT)
ASSIGNED = st.tuples(st.just("assign"), st.lists(GIVEN, unique_by=lambda one: one[0]))


NODE = st.tuples(st.sampled_from(["lose", "drain", "bring back"]), st.integers(0, len(NODES) - 1))
DEVICE = st.tuples(st.sampled_from(["cordon", "cordon", "uncordon"]), st.integers(0, sum(len(node.devices) for node in NODES) - 1))


def named(way: Way, order: list[int] | None) -> tuple[int, ...]:
    """The first of its type in that order, as many as it needs; none: the rule chooses."""
    types = {device: node.type for node in NODES for device in node.devices}
    found = tuple(device for device in order or () if types[device] == way.type)[: way.gpus]
    return found if len(found) == way.gpus else ()


@MORE
@given(
    jobs=MANY,
    steps=st.lists(st.one_of(RANKED, RANKED, ASSIGNED, ASSIGNED, NODE, DEVICE), min_size=1, max_size=8),
    min_run=st.sampled_from([0.0, 0.0, 15.0]),
    preempt=st.sampled_from([True, True, True, False]),
    placement=st.sampled_from(["first-free", "consolidated"]),
)
def test_rankings_and_assignments_end_as_a_plain_engine_has_them(
    jobs: list[list[Way]], steps: list[tuple[str, Any]], min_run: float, preempt: bool, placement: str
) -> None:
    engine, plain = both(jobs, min_run, placement)
    for step, (kind, what) in enumerate(steps):
        engine.state.now = 10.0 * step
        if kind == "rank":
            engine.commit(Plan.rank(np.argsort(what).astype(np.float64), preempt=preempt))
            plain.rank(list(what), 10.0 * step, preempt)
        elif kind == "lose":
            lose_node(engine.grants, what)
            plain.lose(what, 10.0 * step)
        elif kind == "drain":
            drain_node(engine.state, what)
            plain.drain(what)
        elif kind == "bring back":
            return_node(engine.state, what)
            plain.bring_back(what)
        elif kind in ("cordon", "uncordon"):
            engine.state.tables.cordon(what, closed=kind == "cordon")
            (plain.closed.add if kind == "cordon" else plain.closed.discard)(what)
        else:
            plan = [(row, way, named(jobs[row][way], order)) for row, way, order in what if way < len(jobs[row])]
            engine.commit(Plan.assign([Assignment(row, way, devices=devices) for row, way, devices in plan]))
            plain.assign(plan, 10.0 * step)
        assert_same(engine, plain, f"step {step}")


def test_trials_that_fail_leave_no_trace_however_many_there_are() -> None:
    """Each tries to stop eight gangs and finds too few CPUs: what it remembers of them is forgotten again."""
    small = [job_row(f"small{k}", 1, WORK) for k in range(8)]
    large = [job_row(f"large{k}", 8, WORK, options=f"a:8/8={WORK:g}") for k in range(6)]
    engine = engine_of([*small, *large], "a:1x8/4c")
    low_first = np.arange(14.0)
    engine.commit(Plan.rank(low_first))
    before = [engine.grants.devices(row) for row in range(14)]
    assert before == [(k,) for k in range(8)] + [()] * 6

    engine.state.now = 10.0
    engine.commit(Plan.rank(low_first[::-1].copy()))
    assert [engine.grants.devices(row) for row in range(14)] == before
    assert engine.state.out[:2].tolist() == [0, 0]
    assert engine.state.tables.I[Job.REASON, 8:].tolist() == [Reason.PRIORITY] * 6  # nothing is free: nobody is told of scattered devices
    assert check_books(engine.state, engine.grants) == []


def test_after_a_trial_that_failed_the_next_one_looks_at_everybody_again() -> None:
    small = [job_row(f"small{k}", 1, WORK) for k in range(4)]
    never = job_row("never", 4, WORK, options=f"a:4/8={WORK:g}")  # eight CPUs, where four are
    engine = engine_of([*small, never, job_row("two", 2, WORK)], "a:1x4/4c")
    engine.commit(Plan.rank(np.array([2.0, 3.0, 4.0, 5.0, 9.0, 9.0])))
    engine.state.now = 10.0
    engine.commit(Plan.rank(np.array([2.0, 3.0, 4.0, 5.0, 0.0, 1.0])))

    assert [engine.grants.devices(row) for row in range(6)] == [(0,), (1,), (), (), (), (2, 3)]


@pytest.mark.parametrize("preempt", [False, True])
def test_that_no_one_node_has_room_for_a_small_gang_tells_nothing_of_a_larger_one(preempt: bool) -> None:
    """Three devices must be on one node, which another has; five take several nodes, which are idle."""
    engine = engine_of(gangs(4, 3, 5), "1x4,3x2", placement="consolidated")
    engine.commit(Plan.rank(np.array([0.0, 1.0, 2.0]), preempt=preempt))
    assert [engine.grants.devices(row) for row in range(3)] == [(0, 1, 2, 3), (), (4, 5, 6, 7, 8)]


def test_a_gang_larger_than_the_nodes_that_are_left_takes_several_when_the_largest_is_down() -> None:
    engine = engine_of(gangs(2, 2, 4), "1x4,2x2", placement="consolidated")
    lose_node(engine.grants, 0)
    engine.commit(Plan.rank(np.array([0.0, 1.0, 2.0])))
    assert [engine.grants.devices(row) for row in range(3)] == [(4, 5), (6, 7), ()]
    engine.state.now = 10.0
    engine.commit(Plan.rank(np.array([1.0, 2.0, 0.0])))
    assert [engine.grants.devices(row) for row in range(3)] == [(), (), (4, 5, 6, 7)]


@pytest.mark.parametrize(
    ("options", "cluster", "ranks"),
    [(("a:1", "a:2", "a:2/6"), "a:2x2/3c", (2, 1, 0)), (("c:0/2", "c:0/2", "c:0/3"), "c:2x0/3c", (2, 0, 1))],
)
def test_a_gang_on_a_node_that_drains_is_stopped_for_nobody_and_survives_a_trial(
    options: tuple[str, ...], cluster: str, ranks: tuple[int, ...]
) -> None:
    """What it has on that node cannot help anybody, so the last of the three waits and the others stay as they are."""
    engine = engine_of([job_row(f"j{k}", 1, WORK, options=f"{option}={WORK:g}") for k, option in enumerate(options)], cluster)
    engine.commit(Plan.rank(np.array([0.0, 1.0, np.inf])))
    before = engine.state.tables.I[[Job.HEAD, Job.NODE, Job.HELD, Job.OPTION, Job.PREEMPTIONS]].tolist()
    drain_node(engine.state, 0)
    engine.state.now = 10.0
    engine.commit(Plan.rank(np.array(ranks, dtype=np.float64)))
    assert engine.state.tables.I[[Job.HEAD, Job.NODE, Job.HELD, Job.OPTION, Job.PREEMPTIONS]].tolist() == before
    assert check_books(engine.state, engine.grants) == []


def test_rows_that_are_far_out_of_order_are_sorted_as_well() -> None:
    """Insertion gives up on them; of equal keys the lower row comes first."""
    keys = np.array([(k * 7919) % 101 for k in range(300)], dtype=np.float64)
    table, rows = np.zeros((Job.KEY + 1, 300)), np.arange(300)
    table[Job.KEY] = keys
    sort_rows(table, rows, 300)
    assert rows.tolist() == np.lexsort((np.arange(300), keys)).tolist()
