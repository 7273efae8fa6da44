"""An engine and a plain twin of it on the same small cluster, and what must be the same on both."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from tests.engine.states import engine_of
from tests.oracles.books import check_books
from tests.oracles.plain_commit import PlainCommit
from tests.oracles.plain_walk import Gang, Place, Way

from gantline.core.columns import Job, Node, elapsed
from gantline.core.facts import Costs
from gantline.core.phases import Phase
from gantline.engine.engine import Engine

JOBS, WORK = 7, 1e6
CLUSTER = "a:2x2/3c/6g,b:1x3/2c/4g,c:1x0/6c/4g,a:1x3/4c/6g"  # too few CPUs and too little memory for all devices: many a trial fails
NODES = [
    Place(0, (0, 1), 3.0, 6.0),
    Place(0, (2, 3), 3.0, 6.0),
    Place(1, (4, 5, 6), 2.0, 4.0),
    Place(2, (), 6.0, 4.0),
    Place(0, (7, 8, 9), 4.0, 6.0),
]
NAMES = "abc"

MEMORY = st.sampled_from([0.0, 0.0, 0.0, 3.0])

WAYS = st.one_of(
    st.builds(Way, st.just(0), st.integers(1, 5), st.sampled_from([1.0, 2.0]), st.sampled_from([0.0, 1.0, 2.0]), MEMORY),
    st.builds(Way, st.just(1), st.integers(1, 3), st.sampled_from([0.5, 4.0]), st.sampled_from([0.0, 1.0]), MEMORY),
    st.builds(Way, st.just(2), st.just(0), st.just(0.25), st.sampled_from([2.0, 4.0]), MEMORY),
)


def text(way: Way) -> str:
    each = max(way.gpus, 1)
    beside = f"/{way.cpus * each:g}/{way.memory * each:g}" if way.cpus or way.memory else ""
    return f"{NAMES[way.type]}:{way.gpus}{beside}={WORK / way.rate:g}"


def both(jobs: list[list[Way]], min_run: float, placement: str) -> tuple[Engine, PlainCommit]:
    """The engine and its twin, everybody waiting."""
    rows: list[dict[str, Any]] = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": max(ways[0].gpus, 1), "duration": WORK, "options": "|".join(map(text, ways))}
        for k, ways in enumerate(jobs)
    ]
    engine = engine_of(rows, CLUSTER, costs=Costs(start=1.0, resume=2.0, move=3.0, resize=4.0), min_run=min_run, placement=placement)
    gangs = [Gang(ways) for ways in jobs]
    return engine, PlainCommit(NODES, gangs, 1.0, 2.0, 3.0, min_run, consolidated=placement == "consolidated", resize=4.0)


def assert_same(engine: Engine, plain: PlainCommit, where: str) -> None:
    """Who runs, where, how, how fast, since when; what was done; what is left."""
    t, now = engine.state.tables, engine.state.now
    assert check_books(engine.state, engine.grants) == []
    for row, gang in enumerate(plain.gangs):
        told = f"row {row} at {where}"
        assert (t.I[Job.PHASE, row] == Phase.RUNNING) == gang.runs, told
        assert engine.grants.devices(row) == gang.devices, told
        assert t.I[Job.OPTION, row] - t.I[Job.OPTION_FIRST, row] == gang.way if gang.runs else t.I[Job.OPTION, row] == -1, told
        assert (t.I[Job.RESTARTS, row], t.I[Job.PREEMPTIONS, row]) == (gang.restarts, gang.preemptions), told
        done = gang.done
        if gang.runs:
            rate = gang.ways[gang.way].rate
            assert t.F[Job.RATE, row] == pytest.approx(rate), told
            assert max(t.F[Job.SINCE, row], now) == pytest.approx(max(gang.since, now)), told
            done += rate * max(0.0, now - gang.since)
        assert t.F[Job.DONE, row] + t.F[Job.RATE, row] * elapsed(t.F, t.I, row, now) == pytest.approx(done), told
    assert t.NF[Node.CPUS].tolist() == pytest.approx(plain.left("cpus"))
    assert t.NF[Node.MEMORY].tolist() == pytest.approx(plain.left("memory"))
