"""Quotas are the engine's: whatever a policy answers, no queue holds more than it may, and what is borrowed is given back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.held import most_held
from tests.engine.states import commit, engine_of
from tests.examples import FEWER
from tests.jobs import job_row as job

from gantline import Assignment, Mode
from gantline.core.columns import Job
from gantline.core.queues import Queue
from gantline.core.reasons import Reason
from gantline.engine.gates.quotas import CommonQuotas
from gantline.simulator.simulate import simulate


def starts(run):
    return {name: start for name, start in run.jobs.select("job", "first_start").iter_rows() if not math.isnan(start)}


def stops(run):
    return run.allocations.filter(run.allocations["reason"] == "quota")["job"].to_list()


# --- one story each ------------------------------------------------------------------------------------------------------
def test_the_third_device_is_borrowed_while_half_of_the_machine_is_idle_unless_that_is_forbidden():
    jobs = [job(f"j{k}", at=k, queue="q") for k in range(3)]
    assert starts(simulate(jobs, "1x4", "fifo", queues="q=2:inf"))["j2"] == 2
    assert starts(simulate(jobs, "1x4", "fifo", queues="q=2"))["j2"] == 100


def test_a_job_of_three_devices_does_not_run_in_a_queue_that_may_hold_two():
    run = simulate([job("big", 3, queue="q"), job("small", at=1, queue="q")], "1x4", "fifo", queues="q=2:0")
    assert starts(run) == {"small": 1}
    assert Reason(int(run.tables.I[13, 0])) is Reason.OVER_QUOTA


def test_a_parents_quota_bounds_its_children():
    jobs = [job("a", queue="research/nlp"), job("b", at=1, queue="research/nlp"), job("c", at=2, queue="research/vision")]
    assert starts(simulate(jobs, "1x4", "fifo", queues="research=1:0")) == {"a": 0, "b": 100, "c": 200}


@pytest.mark.parametrize(
    ("policy", "last"),
    [
        ("fifo", ["borrows2", "borrows3"]),
        ("srtf", ["borrows2", "borrows3"]),
        ("fair-share", ["borrows2", "borrows3"]),
        ("las", ["borrows0", "borrows1"]),
    ],
)
def test_an_owner_takes_back_what_others_borrowed_from_the_last_in_the_policys_order(policy, last):
    jobs = [job(f"borrows{k}", 1, 1000, at=k, queue="a") for k in range(4)] + [job("owns", 2, at=50, queue="b")]
    run = simulate(jobs, "1x4", policy, queues="a=2:inf,b=2")
    assert starts(run)["owns"] == 50
    assert sorted(set(stops(run))) == last


def test_a_borrower_has_its_minimum_run_first():
    jobs = [job("borrows", 2, 1000, queue="a"), job("owns", 2, at=10, queue="b")]
    assert starts(simulate(jobs, "1x2", "fifo", queues="a=0:inf,b=2", min_run=60))["owns"] == 60


def test_borrowers_share_by_weight_and_then_leave_each_other_alone():
    jobs = [job(f"a{k}", 1, 500, queue="a") for k in range(6)] + [job(f"b{k}", 1, 500, at=10, queue="b") for k in range(6)]
    run = simulate(jobs, "1x6", "fifo", queues="a=0:inf,b=0:inf:2")
    assert sorted(name for name, at in starts(run).items() if at <= 10) == ["a0", "a1", "a2", "a3", "a4", "a5", "b0", "b1", "b2", "b3"]
    assert len(stops(run)) == 4


def test_a_waiting_job_says_that_a_quota_keeps_it_and_one_without_a_quota_does_not():
    jobs = [job("runs", 2, 1000, queue="q"), job("waits", at=1, queue="q"), job("other", 2, 1000, at=2), job("last", at=3)]
    run = simulate(jobs, "1x4", "sjf", queues="q=2:0", until=50)
    why = {name: Reason(int(run.tables.I[13, row])) for row, name in enumerate(run.tables.ids)}
    assert why["waits"] is Reason.QUOTA
    assert why["last"] in (Reason.RESOURCES, Reason.PRIORITY)


def test_a_place_that_the_first_of_a_queue_cannot_use_is_used_by_the_next():
    """Two nodes with one free device each: the gang of two that wants one node waits, the single behind it runs, and stays."""
    jobs = [
        job("left", 2, 1000),
        job("right", 2, 1000),
        job("gang", 2, 50, at=1, queue="q"),
        job("single", at=2, queue="q"),
    ]
    run = simulate(jobs, "2x3", "sjf", queues="q=2:0", placement="consolidated")
    assert starts(run)["single"] == 2
    assert "single" not in stops(run)


def test_a_job_that_the_policy_is_not_shown_does_not_start_by_its_last_rank():
    jobs = [job("other", 3, 50, queue="r"), job("waits", 2, 10, at=1, queue="q"), job("first", at=2, queue="q", priority=1)]
    run = simulate(jobs, "1x4", "gandiva", queues="q=2:0,r=4")  # 'waits' was ranked before 'first' came, which goes before it
    assert starts(run) == {"other": 0, "first": 2, "waits": 102}


def test_policies_keep_their_order_within_a_queue():
    jobs = [job("long", 1, 1000, queue="q"), job("middle", 1, 500, at=1, queue="q"), job("short", 1, 10, at=2, queue="q")]
    assert starts(simulate(jobs, "1x4", "sjf", queues="q=1:0")) == {"long": 0, "short": 1000, "middle": 1010}


def test_an_elastic_job_grows_to_its_queues_limit_and_no_further():
    jobs = [job("e", 1, 1000, queue="q", min_gpus=1, max_gpus=8)]
    assert most_held(simulate(jobs, "1x8", "voda.elastic_fifo", queues="q=3:1", until=100), ["q"]) == {"q": 4}


@pytest.mark.parametrize("together", [True, False])
def test_a_group_that_starts_together_waits_as_one_for_the_quota_of_a_member(together):
    """A quota that is set while a policy thinks about both members."""
    engine = engine_of([job("slim", queue="open"), job("wide", 2, queue="tight")], "1x4")
    pair = [Assignment(k, group=1, mode=Mode.SPACE, together=together) for k in range(2)]
    tables = engine.state.tables

    engine.quotas.bounds = CommonQuotas(queue=1.0)
    commit(engine, pair)

    assert tables.I[Job.HELD].tolist() == [0 if together else 1, 0]
    assert tables.I[Job.REASON].tolist() == [Reason.TOGETHER if together else Reason.NONE, Reason.OVER_QUOTA]
    engine.quotas.bounds = CommonQuotas(queue=2.0)
    commit(engine, pair, at=10.0)
    assert tables.I[Job.HELD].tolist() == [1, 2]


def test_a_member_that_runs_goes_on_while_a_quota_holds_back_one_that_would_join_it():
    engine = engine_of([job(name, queue=name) for name in ("runs", "waits", "bound")], "1x4")
    rows = [Assignment(k, group=1, mode=Mode.SPACE, together=True) for k in range(3)]
    commit(engine, rows[:1])

    engine.quotas.bounds = CommonQuotas(queue=1.0)
    engine.state.tables.queue_tree["bound"] = Queue("bound", quota=0.0, borrow=0.0)
    commit(engine, rows, at=10.0)

    assert engine.state.tables.I[Job.HELD].tolist() == [1, 0, 0]


sizes = st.integers(1, 4)
works = st.lists(
    st.tuples(st.sampled_from(["a", "b", "b/x", "b/y", ""]), sizes, st.integers(1, 60), st.integers(0, 100)), min_size=1, max_size=10
)


@FEWER
@given(
    works, st.sampled_from(["fifo", "srtf", "las", "fair-share", "voda.afs_l"]),
    st.sampled_from(["a=2:0,b=3,b/x=1:1", "a=1:inf,b/y=2:0", "a=0:1,b=4:0:2"]), st.sampled_from([0.0, 5.0]),
)  # fmt: skip
def test_quotas_hold_on_both_clocks_alike(asked, policy, queues, min_run):
    jobs = [job(f"j{k}", gpus, work, at=at, queue=queue) for k, (queue, gpus, work, at) in enumerate(sorted(asked, key=lambda one: one[3]))]
    run, acknowledged = (simulate(jobs, "1x6", policy, queues=queues, min_run=min_run, executor=how) for how in ("instant", "acknowledged"))
    assert acknowledged.summary["log_hash"] == run.summary["log_hash"]
    most = {"a=2:0,b=3,b/x=1:1": {"a": 2, "b/x": 2}, "a=1:inf,b/y=2:0": {"b/y": 2}, "a=0:1,b=4:0:2": {"a": 1, "b": 4}}[queues]
    held = most_held(run, most)
    assert all(held[name] <= most[name] for name in most)
