"""The general path and the compiled one are two ways to the same books, where a plan is simple enough for both."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.states import engine_of

from gantline.core import columns as c
from gantline.core.plan import Assignment, Assignments, Plan
from gantline.engine.engine import Engine

JOBS = 6


def twins(placement: str, gpus: list[int]) -> tuple[Engine, Engine]:
    rows = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": g, "duration": 100.0, "options": f"a:{g}/{g}=100|b:{g}=50|cpu:0/3=400"}
        for k, g in enumerate(gpus)
    ]
    first, second = (engine_of(rows, "a:3x3/8c,b:2x2/4c,cpu:1x0/8c", placement=placement) for _ in range(2))
    return first, second


@settings(max_examples=60, deadline=None)
@given(
    placement=st.sampled_from(["first-free", "consolidated", "consolidated:preferred"]),
    gpus=st.lists(st.integers(1, 4), min_size=JOBS, max_size=JOBS),
    plans=st.lists(st.lists(st.tuples(st.integers(0, JOBS - 1), st.integers(0, 2)), unique_by=lambda t: t[0], max_size=JOBS), max_size=5),
)
def test_both_paths_give_the_same_devices_speeds_and_reasons(placement: str, gpus: list[int], plans: list[list[tuple[int, int]]]) -> None:
    compiled, general = twins(placement, gpus)
    for step, plan in enumerate(plans):
        now = [int(compiled.state.tables.I[c.OPTION, k] - compiled.state.tables.I[c.OPTION_FIRST, k]) for k in range(JOBS)]
        rows = [Assignment(job, now[job] if now[job] >= 0 else option) for job, option in plan]  # who runs keeps its way to run
        for engine in (compiled, general):
            engine.state.now, engine.state.decision = 10.0 * step, step
        compiled.commit(Plan.assign(rows))
        general.grants.commit(general.state.rows, Assignments.of(rows))
        general.state.rebuild()
        ours, theirs = general.state.tables, compiled.state.tables
        np.testing.assert_array_equal(ours.D, theirs.D)
        np.testing.assert_array_equal(ours.NI, theirs.NI)
        np.testing.assert_allclose(ours.NF, theirs.NF)
        for job, option in plan:
            if option == 2:  # for lack of CPUs the compiled path says "fragmented"
                ours.I[c.REASON, job] = theirs.I[c.REASON, job]
        np.testing.assert_array_equal(ours.I[:, :JOBS], theirs.I[:, :JOBS])
        np.testing.assert_allclose(ours.F[:, :JOBS], theirs.F[:, :JOBS])
        assert general.state.out.tolist() == compiled.state.out.tolist()
    assert general.state.log.hash() == compiled.state.log.hash()
