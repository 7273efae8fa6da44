"""The compiled walk against a plain one: several types, options with rates and CPUs, costs, trials that fail and must leave no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.states import engine_of
from tests.oracles.plain_walk import Gang, Place, PlainWalk, Way

from gantline.core import columns as c
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.engine.books import check_books
from gantline.engine.engine import Engine
from gantline.performance.costs import Costs

JOBS, WORK = 7, 1e6
CLUSTER = "a:2x2/3c,b:1x3/2c,c:1x0/6c"  # too few CPUs for all devices: many a trial fails
NODES = [Place(0, (0, 1), 3.0), Place(0, (2, 3), 3.0), Place(1, (4, 5, 6), 2.0), Place(2, (), 6.0)]
NAMES = "abc"

WAYS = st.one_of(
    st.builds(Way, st.just(0), st.integers(1, 4), st.sampled_from([1.0, 2.0]), st.sampled_from([0.0, 1.0, 2.0])),
    st.builds(Way, st.just(1), st.integers(1, 3), st.sampled_from([0.5, 4.0]), st.sampled_from([0.0, 1.0])),
    st.builds(Way, st.just(2), st.just(0), st.just(0.25), st.sampled_from([2.0, 4.0])),
)


def text(way: Way) -> str:
    cpus = f"/{way.cpus * max(way.gpus, 1):g}" if way.cpus else ""
    return f"{NAMES[way.type]}:{way.gpus}{cpus}={WORK / way.rate:g}"


def both(jobs: list[list[Way]], min_run: float) -> tuple[Engine, PlainWalk]:
    rows: list[dict[str, Any]] = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": max(ways[0].gpus, 1), "duration": WORK, "options": "|".join(map(text, ways))}
        for k, ways in enumerate(jobs)
    ]
    engine = engine_of(rows, CLUSTER, costs=Costs(start=1.0, resume=2.0, move=3.0), min_run=min_run)
    return engine, PlainWalk(NODES, [Gang(ways) for ways in jobs], 1.0, 2.0, 3.0, min_run)


@settings(max_examples=150, deadline=None)
@given(
    jobs=st.lists(st.lists(WAYS, min_size=1, max_size=3), min_size=JOBS, max_size=JOBS),
    orders=st.lists(st.permutations(range(JOBS)), min_size=1, max_size=5),
    min_run=st.sampled_from([0.0, 0.0, 15.0]),
    preempt=st.sampled_from([True, True, True, False]),
)
def test_the_walk_does_what_a_plain_one_does(jobs: list[list[Way]], orders: list[list[int]], min_run: float, preempt: bool) -> None:
    engine, plain = both(jobs, min_run)
    t = engine.state.tables
    for step, order in enumerate(orders):
        engine.state.now = 10.0 * step
        engine.commit(Plan.rank(np.argsort(order).astype(np.float64), preempt=preempt))
        plain.rank(list(order), 10.0 * step, preempt)
        assert check_books(engine.state, engine.grants) == []
        for row, gang in enumerate(plain.gangs):
            told = f"row {row} at decision {step}"
            assert (t.I[c.PHASE, row] == Phase.RUNNING) == gang.runs, told
            assert engine.grants.devices(row) == gang.devices, told
            assert t.I[c.OPTION, row] - t.I[c.OPTION_FIRST, row] == gang.way if gang.runs else t.I[c.OPTION, row] == -1, told
            assert (t.I[c.RESTARTS, row], t.I[c.PREEMPTIONS, row]) == (gang.restarts, gang.preemptions), told
            if gang.runs:
                assert t.F[c.RATE, row] == pytest.approx(gang.ways[gang.way].rate), told
                assert t.F[c.SINCE, row] == pytest.approx(gang.since), told
            assert t.F[c.DONE, row] == pytest.approx(gang.done), told
        assert t.NF[c.N_CPUS].tolist() == pytest.approx(plain.cpus_free())


def test_a_victim_goes_home_only_if_all_its_cpus_are_still_there() -> None:
    jobs = [[Way(0, 1, 1.0, 0.0)], [Way(0, 2, 1.0, 2.0)], [Way(0, 1, 1.0, 2.0)]]
    told = {"arrival": 0.0, "duration": WORK}
    rows = [{"job": f"j{k}", "gpus": ways[0].gpus, "options": text(ways[0]), **told} for k, ways in enumerate(jobs)]
    engine = engine_of(rows, "a:1x3/4c")
    never = float("inf")
    engine.commit(Plan.rank(np.array([0.0, 1.0, never])))
    assert engine.grants.devices(1) == (1, 2)
    engine.state.now = 10.0
    engine.commit(Plan.rank(np.array([never, 1.0, 0.0])))  # the first goes, the last comes: it needs half of what the second holds
    assert check_books(engine.state, engine.grants) == []
    assert engine.grants.devices(2) == (0,)
    assert engine.grants.devices(1) == ()
