"""Two gangs do not stop each other while they start, nor before they have saved: the rules by which real programs are treated."""

from __future__ import annotations

import numpy as np
import pytest
from tests.jobs import by_job, job_row

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.engine.assembly.finders import stops_of
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.engine import Engine
from gantline.engine.preemption_grace import LIVE_STOPS, StopRules
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.placement.rules import find_placement
from gantline.policies.registry import make_policy
from gantline.simulator.simulate import simulate
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace

GANGS = [job_row(name, 2, 900.0, at=at) for name, at in (("a", 0.0), ("b", 1.0))]


def restarts(**more):
    return simulate(GANGS, "1x2", "las", **more).jobs["restarts"].sum()


def test_two_gangs_under_las_leave_each_other_their_minimum_run():
    """With nothing to pay and nothing to wait for, LAS lets them take turns at every look; a minimum run makes turns of it."""
    assert restarts(executor="measured", min_run=300.0) <= 6 < restarts(executor="measured", min_run=0.0)


# --- turns of an order that moves by itself ------------------------------------------------------------------------------
TINY = [job_row(f"t{k}", 1, 1.0, at=7.0 * k + 3.0) for k in range(120)]  # each is a reason to ask again


def switches(executor, **more):
    """How often each gang was stopped, and at which instants others took its place."""
    run = simulate([*GANGS, *TINY], "1x3", "las", until=900.0, executor=executor, **more)
    spans = run.allocations.filter(run.allocations["job"].is_in(["a", "b"]) & (run.allocations["reason"] == "preempted"))
    return sorted(spans["end"].to_list())


@pytest.mark.parametrize("executor", ["instant", "acknowledged", "measured"])
def test_however_much_happens_a_gang_is_stopped_for_another_at_the_end_of_a_turn_only(executor):
    assert any(end % 60.0 for end in switches(executor, turn=0.0, min_run=0.0, grace=0.0))
    stopped = switches(executor, turn=120.0, min_run=0.0, grace=0.0)
    assert stopped
    assert not [end for end in stopped if end % 120.0]


def test_in_between_jobs_start_where_there_is_room():
    run = simulate([*GANGS, job_row("tiny", 1, 5.0, at=100.0)], "1x3", "las", turn=600.0)
    assert by_job(run, "first_start")["tiny"] == 100.0


def test_in_rounds_a_turn_ends_at_the_next_boundary():
    ends = switches("instant", turn=100.0, round=70.0)
    assert ends
    assert {end % 70.0 for end in ends} == {0.0}
    assert all(end % 100.0 < 70.0 for end in ends)


def test_a_strict_regime_waits_for_the_end_of_a_turn_too():
    ends = switches("instant", regime="blox", round=60.0, turn=240.0)
    assert ends
    assert {end % 240.0 for end in ends} == {0.0}


def test_an_order_that_does_not_move_is_not_held_up():
    """SRTF stops a long job for a short one when that comes: nothing would turn against the short one later."""
    jobs = [job_row("long", 2, 900.0), job_row("short", 2, 30.0, at=10.0)]
    run = simulate(jobs, "1x2", "srtf", turn=600.0)
    assert by_job(run, "first_start")["short"] == 10.0


@pytest.mark.parametrize(("policy", "moves"), [("las", 1), ("tiresias", 1), ("fair-share", 1), ("srtf", 0), ("fifo", 0), ("afs", 0)])
def test_policies_say_whether_their_order_moves_by_itself(policy, moves):
    assert make_policy(policy).order_moves() == bool(moves)


# --- what is usual where real programs run -------------------------------------------------------------------------------
def test_the_measured_executor_spares_gangs_as_a_service_does():
    assert stops_of(RunSpec(executor="measured")) == LIVE_STOPS
    assert stops_of(RunSpec(executor="measured", min_run=0, turn="5m")) == StopRules(0.0, LIVE_STOPS.grace, 300.0)
    assert stops_of(RunSpec()) == StopRules()
    explicit = simulate(GANGS, "1x2", "las", executor="measured", min_run=60.0, grace=120.0, turn=60.0)
    assert simulate(GANGS, "1x2", "las", executor="measured").allocations.equals(explicit.allocations)


@pytest.mark.parametrize("executor", ["instant", "measured"])
def test_a_gang_that_can_save_is_not_stopped_before_it_has(executor):
    """A save every 40 s: a short job that comes at 10 s waits for the first one, unless nothing is spared."""
    jobs = [job_row("long", 1, 500.0), job_row("short", 1, 5.0, at=10.0)]

    def start(grace):
        run = simulate(jobs, "1x1", "srtf", executor=executor, costs="checkpoint=40", min_run=0.0, turn=0.0, grace=grace)
        return by_job(run, "first_start")["short"]

    assert [start(grace) for grace in (0.0, 20.0, 120.0)] == [10.0, 20.0, 40.0]


def test_a_gang_that_pays_for_its_start_is_starting():
    jobs = [job_row("long", 1, 500.0), job_row("short", 1, 5.0, at=10.0)]
    run = simulate(jobs, "1x1", "srtf", costs="start=30", grace=120.0)
    assert by_job(run, "first_start")["short"] == 30.0


def test_the_measured_executor_stops_a_gang_that_is_starting_when_its_start_is_over():
    """A short job that comes at 10 s, amid a start of 30 s, gets the device when the long one has started and can be told to leave."""
    jobs = [job_row("long", 1, 500.0), job_row("short", 1, 5.0, at=10.0)]
    run = simulate(jobs, "1x1", "srtf", executor="measured", costs="start=30", min_run=0.0, turn=0.0, grace=0.0)
    assert run.allocations.select("job", "start", "end").rows() == [("long", 0.0, 30.0), ("short", 30.0, 65.0), ("long", 65.0, 565.0)]


def after(grace, starts):
    """The tables after a long and a short job on one device, with starts that take so long."""
    jobs = [job_row(name, 1, work, at=at) for name, at, work in (("long", 0.0, 500.0), ("short", 5.0, 5.0))]
    state = State(load_tables(Trace.from_records(jobs), parse_cluster("1x1")), Regime(), find_placement("first-free"))
    engine = Engine(state, make_policy("srtf", {}))
    engine.preemption_grace.grace = grace
    executor = FaultyExecutor(state.tables.F[Job.WORK].copy(), Faults(start=(starts, starts)))
    Simulation(engine, driver=Acknowledged(engine, executor)).run()
    assert np.isfinite(state.tables.F[Job.FINISH]).all()
    assert not state.tables.I[Job.LOCKED].any()
    return state.tables


def test_a_gang_is_not_stopped_while_it_starts():
    """Starts take 30 s. A short job that comes meanwhile ranks first: it stops the long one at once, unless that one is spared."""
    assert after(0.0, 30.0).F[Job.FIRST_START, 1] == 5.0
    assert 30.0 <= after(60.0, 30.0).F[Job.FIRST_START, 1] < 60.0


def test_one_that_takes_long_to_get_up_is_spared_for_its_grace_only():
    assert 60.0 <= after(60.0, 400.0).F[Job.FIRST_START, 1] < 400.0
