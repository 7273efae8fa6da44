"""A resize acts within a decision, whatever the policy: what a job holds is within what it asks for from then on."""

from __future__ import annotations

import pytest
from tests.engine.held import held

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action, JobRequest
from gantline.core.phases import Phase
from gantline.simulator.simulate import simulate


def job(name, gpus, arrival=0.0, duration=1000.0, **more):
    return {"job": name, "arrival": arrival, "gpus": gpus, "duration": duration, **more}


def both_clocks(*what, **options):
    run, other = (simulate(*what, **options, executor=how) for how in ("instant", "acknowledged"))
    assert run.summary["log_hash"] == other.summary["log_hash"]
    return run


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf", "fair-share", "tiresias"])
def test_it_grows_where_devices_are_free_and_keeps_those_that_it_has(policy):
    run = both_clocks([job("a", 1)], "1x4", policy, inputs=[JobRequest(10.0, Action.RESIZE, "a", 3)])
    assert [(span["start"], span["gpus"]) for span in run.allocations.iter_rows(named=True)] == [(0.0, 1), (10.0, 3)]
    assert run.jobs["preemptions"].to_list() == [0]


def test_without_room_it_stops_and_waits_for_its_new_size():
    run = both_clocks([job("a", 1), job("b", 1, duration=100.0)], "1x2", "fifo", inputs=[JobRequest(10.0, Action.RESIZE, "a", 2)])
    assert (held(run, "a", 50.0), held(run, "a", 100.0)) == (0, 2)


def test_a_size_within_the_new_bounds_stays():
    run = both_clocks([job("a", 2)], "1x4", "fifo", inputs=[JobRequest(10.0, Action.RESIZE, "a", 3, 1, 4)])
    assert len(run.allocations) == 1


def test_growth_keeps_to_the_quota():
    jobs = [job("a", 1, queue="q"), job("b", 1, queue="q", duration=200.0)]
    run = both_clocks(jobs, "1x4", "fifo", queues="q=2:0", inputs=[JobRequest(10.0, Action.RESIZE, "a", 2)])
    assert (held(run, "a", 50.0), held(run, "a", 200.0)) == (0, 2)
    with pytest.raises(RefusedError, match="asks for 3 devices, and queue 'q' may hold 2 at most"):
        both_clocks(jobs, "1x4", "fifo", queues="q=2:0", inputs=[JobRequest(10.0, Action.RESIZE, "a", 3)])


@pytest.mark.parametrize(("quota", "at_once"), [(4, 3), (3, 0)])
def test_growth_keeps_to_the_quota_of_the_user_and_uses_all_of_it(quota, at_once):
    """Of four devices 'a' asks for three while its user's other job holds one."""
    jobs = [job("a", 1, user="ann"), job("b", 1, user="ann", duration=200.0)]
    run = both_clocks(jobs, "1x4", "fifo", admission=f"quota:user={quota}", inputs=[JobRequest(10.0, Action.RESIZE, "a", 3)])
    assert (held(run, "a", 50.0), held(run, "a", 250.0)) == (at_once, 3)
    assert (run.jobs["restarts"].to_list() == [0, 0]) is (at_once == 3), "what fits exactly is no reason to stop"


def test_a_gang_that_is_changing_already_is_brought_within_its_bounds_when_that_is_done():
    """The executor takes ten seconds to make a change true; two requests come within that time."""
    requests = [JobRequest(50.0, Action.RESIZE, "a", 3), JobRequest(52.0, Action.RESIZE, "a", 1)]
    run = simulate([job("a", 2)], "1x4", "fifo", inputs=requests, executor="faulty:3", until=400)
    assert held(run, "a", 390.0) == 1
    assert Phase(int(run.tables.I[0, 0])) is not Phase.FAILED
