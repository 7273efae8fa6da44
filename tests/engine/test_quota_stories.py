"""Quotas as stories, with the options of the command line: nobody stops in vain, and nobody holds what another is promised and wants."""

from __future__ import annotations

import pytest
from tests.engine.held import held, most_held
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.core.inputs import SetQueue
from gantline.core.reasons import Reason
from gantline.simulator.run import Run

ASSIGNING = ["afs", "voda.afs_l", "themis", "optimus", "edf", "gandiva", "antman", "equal-share", "shockwave", "synergy"]


def told(text: str, cluster: str, policy: str, **more: object) -> Run:
    """The run of jobs that are written as job,arrival,gpus,duration,queue."""
    names = ("job", "arrival", "gpus", "duration", "queue")
    rows = [dict(zip(names, row.split(","))) for row in text.split()]
    jobs = [{**row, "arrival": float(row["arrival"]), "gpus": int(row["gpus"]), "duration": float(row["duration"])} for row in rows]
    return simulate(jobs, cluster, policy, **more)


def starts(run: Run) -> dict[str, float]:
    return by_job(run, "first_start")


# --- nobody stops in vain ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("min_run", [0, 5])
def test_jobs_of_one_queue_do_not_stop_each_other_for_what_it_borrows(min_run):
    run = told("1,0,1,900,a 2,0,2,900,a 3,0,1,900,a 4,0,2,900,a", "1x4", "fifo", queues="a=2:1", min_run=min_run)
    assert run.summary["preemptions"] == 0
    assert run.summary["makespan"] == 1800


def test_a_gang_is_not_stopped_for_a_later_smaller_job_of_its_own_queue():
    later = " ".join(f"y{k},{10 + 20 * k},1,15,a" for k in range(60))
    run = told(f"x,0,2,100,a {later}", "1x4", "fifo", queues="a=1:1,b=3", costs="resume=30")
    assert by_job(run, "jct")["x"] == 100
    assert run.summary["preemptions"] == 0


def test_within_a_queue_a_policy_that_stops_jobs_for_others_still_does():
    run = told("long,0,2,1000,a short,10,2,50,a other,10,2,50,b", "1x4", "srtf", queues="a=2,b=2")
    assert starts(run) == {"long": 0, "short": 10, "other": 10}


def test_no_borrower_stops_where_its_devices_would_not_let_the_owner_start():
    """The owner's gang wants one node: the borrower of one device on each of two nodes stays, because the other devices are promised."""
    jobs = "o0,0,3,1000,own b0,0,1,1000,lent o1,0,3,1000,own b1,0,1,1000,lent gang,10,2,50,own"
    run = told(jobs, "2x4", "fifo", queues="own=8,lent=0:2", placement="consolidated", until=500)
    assert not (run.allocations["reason"] == "quota").any()


def test_of_the_borrowers_only_those_stop_that_the_owner_needs():
    """The last borrower is on the other node: it is tried first, and goes on as if nothing had been."""
    jobs = "b0,0,3,900,b b1,1,4,900,b b2,2,1,900,b a0,10,4,50,a"
    run = told(jobs, "2x4", "fifo", queues="a=4,b=4:inf", placement="consolidated")
    stopped = run.allocations.filter(run.allocations["reason"] == "quota")
    assert starts(run)["a0"] == 10
    assert stopped["job"].to_list() == ["b1"]


# --- promises ------------------------------------------------------------------------------------------------------------
def test_the_queue_that_has_borrowed_most_gives_way_to_one_that_is_promised_what_it_asks_for():
    jobs = "b0,0,3,1000,b c0,10,1,1000,c c1,10,1,1000,c b1,10,2,1000,b a0,20,2,50,a"
    run = told(jobs, "1x8", "fifo", queues="a=5,b=2:inf,c=1:1")
    assert starts(run)["a0"] == 20
    assert run.allocations.filter(run.allocations["reason"] == "quota")["job"].to_list() == ["b1"]


@pytest.mark.parametrize("policy", ASSIGNING)
@pytest.mark.parametrize("rounds", [None, 10])
def test_a_promise_is_kept_under_policies_that_assign_devices(policy, rounds):
    jobs = "a0,0,1,1000,a a1,0,1,1000,a a2,0,1,1000,a a3,0,1,1000,a b0,50,1,300,b b1,60,1,300,b"
    run = told(jobs, "1x4", policy, queues="a=2:inf,b=2", round=rounds, until=400)
    assert starts(run)["b0"] == 50
    assert starts(run)["b1"] == 60
    assert most_held(run, ["b"]) == {"b": 2}


def test_grown_gangs_become_smaller_before_any_stops():
    grown = job_row("grown", 1, 1000, min_gpus=1, max_gpus=4, queue="a")
    owner = job_row("owner", 2, at=50, min_gpus=2, max_gpus=2, queue="b")
    run = simulate([grown, owner], "1x4", "afs", queues="a=1:inf,b=2")
    assert (held(run, "grown", 40), held(run, "grown", 60), held(run, "owner", 60)) == (4, 2, 2)
    assert run.summary["preemptions"] == 0


# --- limits --------------------------------------------------------------------------------------------------------------
def test_no_new_grant_exceeds_a_limit_beside_gangs_within_their_minimum_run():
    jobs = "j0,0,2,300,p j1,60,2,200,p j2,60,1,200,q j3,60,2,200,p j4,80,1,100,q j5,140,3,300,q j6,160,2,300,q"
    run = told(jobs, "2x4", "las", queues="p=4:0,q=5:0", min_run=60)
    most = most_held(run, ["p", "q"])
    assert most["p"] <= 4
    assert most["q"] <= 5


@pytest.mark.parametrize("policy", ["fifo", "afs"])
def test_a_quota_that_shrinks_is_kept_from_then_on(policy):
    jobs = "j0,0,1,100,q j1,1,1,100,q j2,2,1,100,q"
    run = told(jobs, "1x4", policy, queues="q=3", inputs=[SetQueue(50.0, "q", quota=1.0)])
    assert [sum(held(run, f"j{k}", at) for k in range(3)) for at in (40, 60, 160)] == [3, 1, 1]


def test_of_those_that_run_when_a_quota_shrinks_one_that_fits_goes_on():
    run = told("large,0,3,100,b small,0,1,100,b", "1x4", "fifo", queues="b=4", inputs=[SetQueue(20.0, "b", quota=1.0)], until=300)
    stopped = run.allocations.filter(run.allocations["reason"] == "quota")["job"]
    assert list(stopped) == ["large"]


def test_only_as_many_borrowers_stop_for_a_sister_queue_as_it_needs():
    """What the parent borrows from elsewhere stays borrowed: nobody there wants it back."""
    jobs = "b0,0,3,300,a/x b1,0,1,300,a/x b2,0,2,300,a/x owner,10,3,300,a/y"
    run = told(jobs, "2x3", "drf-sjf", queues="a/x=0:inf,a/y=3,b=2:1")
    stopped = run.allocations.filter(run.allocations["reason"] == "quota")["job"]
    assert starts(run)["owner"] == 10
    assert sorted(stopped) == ["b1", "b2"]


def test_a_job_behind_one_that_its_own_quota_holds_back_waits_and_other_queues_do_not():
    """FIFO keeps its order within a queue."""
    run = told("a0,0,1,100,a a1,1,2,100,a a2,2,1,100,a b0,3,1,100,b", "1x4", "fifo", queues="a=2,b=2", until=50)
    assert starts(run)["b0"] == 3
    why = {name: Reason(int(code)) for name, code in zip(run.tables.ids, run.tables.I[13])}
    assert why["a1"] is Reason.QUOTA
    assert why["a2"] is Reason.BLOCKED
