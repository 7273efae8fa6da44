"""Two gangs do not stop each other while they start, nor before they have saved: the rules by which real programs are treated."""

from __future__ import annotations

import numpy as np

from gantline.assembly.load import load_tables
from gantline.core import columns as c
from gantline.core.cluster_spec import parse_cluster
from gantline.drivers.acknowledged import Acknowledged
from gantline.drivers.faults import Faults
from gantline.drivers.faulty import FaultyExecutor
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.placement.rules import find_placement
from gantline.policies.registry import make_policy
from gantline.simulator.simulate import simulate
from gantline.workload.trace import Trace

GANGS = [{"job": name, "arrival": at, "gpus": 2, "duration": 900.0} for name, at in (("a", 0.0), ("b", 1.0))]


def test_two_gangs_under_las_leave_each_other_their_minimum_run():
    """With nothing to pay and nothing to wait for, LAS lets them take turns at every look; a minimum run makes turns of it."""
    restarts = {run: simulate(GANGS, "1x2", "las", min_run=run, executor="measured").jobs["restarts"].sum() for run in (0.0, 300.0)}
    assert restarts[300.0] <= 6 < restarts[0.0]


def after(grace, starts):
    """The tables after a long and a short job on one device, with starts that take so long."""
    jobs = [{"job": name, "arrival": at, "gpus": 1, "duration": work} for name, at, work in (("long", 0.0, 500.0), ("short", 5.0, 5.0))]
    state = State(load_tables(Trace.from_records(jobs), parse_cluster("1x1")), Regime(), find_placement("first-free"))
    engine = Engine(state, make_policy("srtf", {}))
    engine.sparing.grace = grace
    Acknowledged(engine, executor=FaultyExecutor(state.tables.F[c.WORK].copy(), Faults(start=(starts, starts)))).run()
    assert np.isfinite(state.tables.F[c.FINISH]).all()
    assert not state.tables.I[c.LOCKED].any()
    return state.tables


def test_a_gang_is_not_stopped_while_it_starts():
    """Starts take 30 s. A short job that comes meanwhile ranks first: it stops the long one at once, unless that one is spared."""
    assert after(0.0, 30.0).F[c.FIRST_START, 1] == 5.0
    assert 30.0 <= after(60.0, 30.0).F[c.FIRST_START, 1] < 60.0


def test_one_that_takes_long_to_get_up_is_spared_for_its_grace_only():
    assert 60.0 <= after(60.0, 400.0).F[c.FIRST_START, 1] < 400.0
