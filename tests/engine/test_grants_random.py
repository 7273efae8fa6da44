"""Random plans, sensible and senseless, thrown at the engine while time passes and nodes come and go: the books always agree."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.states import engine_of
from tests.examples import MORE
from tests.oracles.books import check_books

from gantline.core.columns import Job, Node
from gantline.core.facts import Costs
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Mode, Part, Plan
from gantline.engine.advance import finish_due, next_finish
from gantline.engine.engine import Engine
from gantline.engine.node_changes import drain_node, lose_node, return_node

CLUSTER = "a:2x3/8c/32g@r1,b:2x2/4c@r2,cpu:1x0/8c"
DEVICES, NODES, JOBS = 10, 5, 6
WAYS = ("a:1=90|b:1=150", "a:2=120|b:2=60|cpu:0/3=400", "b:1=80", "a:3/3=70", "a:4=100|b:4=100", "a:1/2=200|cpu:0/4=300")


# Strategies are made once: to make one costs more than to draw from it.
WORKER = st.builds(Part, st.just("worker"), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.sampled_from([0.0, 2.0]))
SERVER = st.builds(Part, st.just("ps"), st.just(2), st.integers(1, 2), st.just(0), st.sampled_from([1.0, 5.0]))
PARTS = st.one_of(st.tuples(WORKER), st.tuples(SERVER, WORKER))
KINDS = st.sampled_from(["plain", "sized", "exact", "group", "group exact", "shares", "parts", "side", "odd"])
GROUP, MODE = st.integers(0, 1), st.sampled_from(list(Mode))
HELD = st.lists(st.integers(0, DEVICES - 1), min_size=1, max_size=4, unique=True)
UNTIL, OPTION = st.sampled_from([math.inf, 50.0, 200.0]), st.integers(-1, 2)
SIZE, WITHIN, FRACTION = st.integers(-1, 4), st.sampled_from(["", "node", "rack"]), st.sampled_from([1.0, 0.5, 0.25])
CPUS, NODE, DEVICE = st.sampled_from([0.0, 1.0, 4.0, 40.0]), st.integers(0, NODES - 1), st.integers(0, DEVICES - 1)
ODD_OPTION, ODD_SIZE, ODD_TYPE = st.integers(-2, 9), st.integers(-2, 12), st.integers(-2, 5)
ACTS = st.sampled_from(["plan", "plan", "plan", "plan", "wait", "rank", "lose", "drain", "return", "lock", "cordon", "cordon", "uncordon"])
CHOSEN, ORDER = st.lists(st.integers(0, JOBS - 1), unique=True, max_size=JOBS), st.permutations(range(JOBS))
WAIT = st.sampled_from([0.5, 7.0, 40.0, 300.0])


@st.composite
def assignments(draw: st.DrawFn, job: int) -> list[Assignment]:
    """What one job gets in one plan; mostly possible, sometimes not."""
    kind = draw(KINDS)
    group, mode = draw(GROUP), draw(MODE)
    devices = tuple(draw(HELD))
    until = draw(UNTIL)
    option = draw(OPTION)
    found = {
        "plain": [Assignment(job, option, until=until)],
        "sized": [Assignment(job, gpus=draw(SIZE), within=draw(WITHIN), required=until < 60)],
        "exact": [Assignment(job, devices=devices, until=until)],
        "group": [Assignment(job, option, group=group, mode=mode, fraction=draw(FRACTION), share=0.5)],
        "group exact": [Assignment(job, devices=devices, group=group, mode=mode)],
        "shares": [Assignment(job, 0, share=0.5, group=group, mode=Mode.SPACE), Assignment(job, 1, share=0.2 + 0.3 * group)],
        "parts": [Assignment(job, parts=draw(PARTS))],
        "side": [Assignment(job, option, cpus=draw(CPUS), nodes=(draw(NODE),))],
        "odd": [Assignment(job, draw(ODD_OPTION), gpus=draw(ODD_SIZE), type=draw(ODD_TYPE), fraction=1.5)],
    }
    return found[kind]


OF_JOB = [assignments(job) for job in range(JOBS)]


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, Any]:
    act = draw(ACTS)
    if act == "plan":
        return act, [item for job in draw(CHOSEN) for item in draw(OF_JOB[job])]
    if act == "wait":
        return act, draw(WAIT)
    if act == "rank":
        return act, draw(ORDER)
    return act, draw(DEVICE if act.endswith("cordon") else NODE)


def pass_time(engine: Engine, until: float) -> None:
    """Finishes in their order, as the simulator lets them happen."""
    state, log = engine.state, engine.state.log
    while True:
        due = min(next_finish(state.tables.F, state.tables.I, state.lists), until)
        state.now = due
        finish_due(state.matrices, state.lists, state.now, state.rules, log.columns)
        engine.grants.forget_finished()
        state.rebuild()
        if due >= until:
            return


def take(engine: Engine, act: str, what: Any) -> None:
    state, t = engine.state, engine.state.tables
    place = {row: k for k, row in enumerate(state.rows.tolist())}
    if act == "plan":
        engine.commit(Plan.assign([replace(item, job=place[item.job]) for item in what if item.job in place]))
    elif act == "rank":
        engine.commit(Plan.rank(np.array([what.index(row) for row in place], dtype=np.float64)))
    elif act == "wait":
        pass_time(engine, state.now + what)
    elif act == "lose":
        lose_node(engine.grants, what)
    elif act == "drain":
        drain_node(state, what)
    elif act == "return" and t.NI[Node.UP, what] == 0:
        return_node(state, what)
    elif act.endswith("cordon"):
        t.cordon(what, closed=act == "cordon")
    elif act == "lock":
        t.I[Job.LOCKED, what] = 1 - t.I[Job.LOCKED, what]


@MORE
@given(story=st.lists(steps(), min_size=2, max_size=14), min_run=st.sampled_from([0.0, 20.0]), checkpoint=st.sampled_from([0.0, 15.0]))
def test_whatever_is_asked_the_books_agree(story: list[tuple[str, Any]], min_run: float, checkpoint: float) -> None:
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 100.0, "options": way} for k, way in enumerate(WAYS)]
    costs = Costs(start=1.0, resume=2.0, resize=3.0, move=4.0, checkpoint=checkpoint)
    engine = engine_of(rows, CLUSTER, checkpoint=checkpoint, costs=costs, min_run=min_run)
    t = engine.state.tables
    done = t.F[Job.DONE].copy()
    for act, what in story:
        safe = t.F[Job.SAFE].copy()
        had = {row: {*engine.grants.devices(row)} for row in range(JOBS)}
        may = [engine.grants.holdings.is_open(device) for device in range(DEVICES)]
        take(engine, act, what)
        assert check_books(engine.state, engine.grants, shares=act in ("plan", "rank")) == [], act
        told = engine.state.snapshot().jobs
        assert [told.devices(k) for k in range(len(told))] == [engine.grants.devices(row) for row in engine.state.rows.tolist()]
        engine.state.decision += 1
        assert (t.F[Job.SAFE] >= safe - 1e-9).all(), "saved work was lost"
        new = {device for row in range(JOBS) for device in {*engine.grants.devices(row)} - had[row]}
        assert all(may[device] for device in new), "somebody new got a device that is cordoned or whose node drains"
        if act not in ("lose", "drain"):
            assert (t.F[Job.DONE] >= done - 1e-9).all(), "work was lost without a failure"
        done = t.F[Job.DONE].copy()
        assert (t.F[Job.DONE] <= t.F[Job.WORK] + 1e-6).all()
    for row in range(JOBS):
        if t.I[Job.PHASE, row] == Phase.PENDING:
            assert t.I[Job.HELD, row] == 0
