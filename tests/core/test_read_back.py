"""A snapshot that is written and read back stands for the same engine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.engine.states import commit, engine_of

from gantline import Assignment, Mode, Policy
from gantline.core.columns import Job
from gantline.core.facts import Costs
from gantline.core.inputs import Action, JobRequest
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.engine.engine import Engine
from gantline.engine.state import State

JOBS = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 1000.0} for k in range(3)]


def test_a_snapshot_read_back_knows_whose_turn_is_to_come_and_no_mates_that_have_left() -> None:
    engine = engine_of(JOBS, "1x2", costs=Costs(resume=50.0, switch=5.0))
    group = [Assignment(k, group=0, mode=Mode.TIME, size=2) for k in range(3)]
    commit(engine, group, at=0.0)
    engine.apply(JobRequest(10.0, Action.CANCEL, "j2"))
    assert [one["grant"]["members"] for one in encode_snapshot(engine.state.snapshot())["jobs"]] == [[[0, 1]]] * 2
    commit(engine, group[:1], at=100.0)  # the second waits for its turn

    written = encode_snapshot(engine.state.snapshot())
    assert [one.get("waits_for_turn", False) for one in written["jobs"]] == [False, True]
    again = decode_snapshot(json.loads(json.dumps(written)))
    assert encode_snapshot(again) == written

    later = engine_behind(tables_behind(again), engine.state)
    for one in (engine, later):
        commit(one, group[:2], at=100.0)
        assert one.state.tables.F[Job.SINCE, 1] == pytest.approx(100.0 + 5.0)  # a switch, not a resume


def engine_behind(tables: Tables, like: State) -> Engine:
    """An engine on tables that were read back; their first two rows are active."""
    state = State(tables, like.regime, like.placement, like.facts, now=like.now)
    state.activate(np.arange(2))
    state.rebuild()
    return Engine(state, Policy())
