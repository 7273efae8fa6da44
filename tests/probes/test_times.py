"""Time: leases, runs with a limit, trials, reservations and refusals, shares of the time of a type of device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.probes.scenario import ALONE, FOREVER, Says, each, every, fact, facts, job, spans

from gantline.core.columns import Job
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Mode, Plan, Refusal, Reservation
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate


# A Themis lease: GPUs are won for a time, and renewed or lost when it ends (Mahajan et al., NSDI 2020).
def auction(snapshot: Snapshot) -> list[Assignment]:
    """Leases in force stand. A GPU whose lease is over goes to the worst-off job, judged by what it has had so far."""
    jobs = snapshot.jobs
    keep = np.flatnonzero(jobs.running & (jobs.until > snapshot.now))
    granted = [Assignment(k, until=float(jobs.until[k])) for k in keep]
    free = snapshot.cluster.gpus - int(jobs.gpus[keep].sum())
    for k in np.lexsort((np.arange(len(jobs)), jobs.attained_gpu)):
        if k not in keep and jobs.gpus[k] <= free:
            granted.append(Assignment(int(k), until=snapshot.now + 20.0))
            free -= int(jobs.gpus[k])
    return granted


def test_a_lease_is_renewed_in_place_when_nobody_bids_higher() -> None:
    run = simulate([job("a", 1, 50)], "1x1", Says(auction))

    assert spans(run, "a") == [(0.0, 50.0, [0], "finished")]
    assert run.summary["decisions"] >= 3  # it was asked at 20 and at 40
    assert fact(run, "a", "restarts") == 0


def test_a_lease_that_ends_within_the_minimum_run_time_waits_and_the_loop_goes_on() -> None:
    run = simulate([job("a", 1, 50), job("b", 1, 30)], "1x1", Says(auction), min_run=45.0)

    start, end, *_ = spans(run, "a")[0]
    assert start == 0.0
    assert end >= 45.0
    assert run.summary["completed"] == 2


def first(purpose: str, seen: float = 30.0) -> Policy:
    """Thirty seconds on one device for every job, as Lucid's profiler has them (ASPLOS 2023); then whole, in order of arrival."""

    def rows(snapshot: Snapshot) -> list[Assignment]:
        jobs, found, free = snapshot.jobs, [], snapshot.cluster.gpus
        for k in range(len(jobs)):
            fresh = jobs.attained[k] < seen
            need = 1 if fresh else int(jobs.gpus[k])
            if need <= free:
                found.append(Assignment(k, gpus=1, purpose=purpose, limit=30.0) if fresh else Assignment(k))
                free -= need
        return found

    return Says(rows)


@pytest.mark.parametrize(("purpose", "end"), [("profile", 115.0), ("trial", 130.0)])
def test_what_was_done_while_profiling_counts_and_what_was_done_in_a_trial_does_not(purpose: str, end: float) -> None:
    run = simulate([job("a", 2, 100)], "1x2", first(purpose))

    assert spans(run, "a") == [(0.0, 30.0, [0], "limit"), (30.0, pytest.approx(end), [0, 1], "finished")]
    assert fact(run, "a", "service") == pytest.approx(end)


def test_a_limit_needs_no_policy_to_be_kept() -> None:
    class Forgetful(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            if snapshot.now > 0:
                raise RuntimeError("lost")
            return Plan.assign([Assignment(0, purpose="profile", limit=5.0)], valid_until=FOREVER)

    assert spans(simulate(ALONE, "1x1", Forgetful(), until=50.0), "a") == [(0.0, 5.0, [0], "limit")]


def test_a_job_that_is_done_within_its_trial_has_finished() -> None:
    run = simulate([job("short", 1, 20)], "1x1", first("trial"))

    assert spans(run, "short") == [(0.0, pytest.approx(20.0), [0], "finished")]


def test_a_job_falls_back_to_where_it_stood_when_its_trial_began_and_is_started_again() -> None:
    policy = each(lambda snapshot, k: {"purpose": "trial" if 10.0 <= snapshot.now < 40.0 else "train"}, 10.0, 40.0)
    run = simulate(ALONE, "1x1", policy)

    assert fact(run, "a", "restarts") == 2  # ten seconds counted, thirty did not
    assert [(start, end) for start, end, _, _ in spans(run, "a")] == [(0.0, 10.0), (10.0, 40.0), (40.0, pytest.approx(130.0))]


def test_a_node_that_fails_ends_the_trials_on_it() -> None:
    failure = [NodeEvent(10.0, "node0", "down"), NodeEvent(20.0, "node0", "up")]

    run = simulate(ALONE, "1x1", first("trial", seen=5.0), node_events=failure)

    assert spans(run, "a") == [(0.0, 10.0, [0], "node-lost"), (20.0, pytest.approx(120.0), [0], "finished")]


def test_a_purpose_that_nothing_knows_costs_the_turn_and_is_named() -> None:
    run = simulate(ALONE, "1x1", every(purpose="trail"), until=50.0)

    assert spans(run, "a") == []
    assert "the purpose 'trail'" in run.incidents[0]


# ElasticFlow: GPUs reserved in future time, and a refusal with a counter-offer (Gu et al., ASPLOS 2023).
class Slots(Policy):
    """The whole cluster is one machine: a new job gets the first slot after all reserved ones, if that ends by its deadline."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, now = snapshot.jobs, snapshot.now
        slots = list(snapshot.reservations)
        refusals = []
        for k in set(range(len(jobs))) - {slot.job for slot in slots}:
            start = max([now, *(slot.end for slot in slots)])
            end = start + float(jobs.remaining[k])
            if end > jobs.deadline[k]:
                refusals.append(Refusal(k, "cannot end by its deadline", {"deadline": end}))
            else:
                slots.append(Reservation(start, end, int(jobs.gpus[k]), job=k))
        running = [Assignment(slot.job, until=slot.end) for slot in slots if slot.start <= now < slot.end]
        later = min((slot.start for slot in slots if slot.start > now), default=FOREVER)
        return Plan.assign(running, reservations=tuple(slots), refusals=tuple(refusals), valid_until=later)


DUE = [
    job("a", 4, 100, deadline=200.0),
    job("b", 4, 100, at=10.0, deadline=250.0),
    job("c", 4, 100, at=20.0, deadline=220.0),
    job("d", 4, 50, at=30.0, deadline=300.0),
]


def test_the_refused_job_leaves_with_an_offer_and_the_run_tells() -> None:
    run = simulate(DUE, "1x4", Slots())

    assert fact(run, "c", "state") == "rejected"
    assert np.isnan(fact(run, "c", "first_start"))
    told = run.events.filter(run.events["kind"] == "rejected").to_dicts()
    assert told == [{"time": 20.0, "kind": "rejected", "job": "c", "detail": "cannot end by its deadline (offer: deadline=300)"}]
    assert [(one.time, one.offer) for one in run.refusals] == [(20.0, {"deadline": 300.0})]


def test_plans_that_come_late_still_mean_the_jobs_they_were_made_for() -> None:
    run = simulate(DUE, "1x4", Slots(), latency=5.0)

    assert fact(run, "c", "state") == "rejected"
    assert run.summary["completed"] == 3
    assert fact(run, "a", "finish") == pytest.approx(105.0)


def test_a_job_that_runs_cannot_be_refused() -> None:
    class Fickle(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            if snapshot.now < 50:
                return Plan.assign([Assignment(0)], valid_until=50.0)
            return Plan(refusals=(Refusal(0, "not any more"),), valid_until=FOREVER)

    run = simulate(ALONE, "1x1", Fickle())

    assert fact(run, "a", "state") == "completed"
    assert "does not wait any more" in run.incidents[0]


# Gavel in ideal mode: every job has a share of the time on each type, and no device in particular (Narayanan et al., OSDI 2020).
V100, K80 = 0, 1
CLUSTER = "v100:1,k80:1"
WAYS = "v100:1=100|k80:1=400"


def shares(table: dict[int, dict[str, dict[int, float]]]) -> Policy:
    """Shares by number of jobs and job id: {jobs: {id: {option: share}}}."""

    def rows(snapshot: Snapshot) -> list[Assignment]:
        wanted = table[len(snapshot.jobs)]
        return [
            Assignment(k, option, share=share) for k, id in enumerate(snapshot.jobs.ids) for option, share in wanted.get(id, {}).items()
        ]

    return Says(rows)


def with_shares(work: float, **options: Any) -> Any:
    """A run of two jobs, of which the last gets a device of its own."""
    two = {"a": {V100: 0.6, K80: 0.4}, "b": {V100: 0.4, K80: 0.6}}
    policy = shares({2: two, 1: {name: {V100: 1.0} for name in "ab"}})
    return simulate([job(name, work=work, options=WAYS) for name in "ab"], CLUSTER, policy, **options)


def test_two_jobs_advance_by_the_sum_of_their_shares_and_the_last_gets_all() -> None:
    run = with_shares(100)

    first = 100 / (0.6 + 0.4 / 4)
    assert facts(run, "finish") == pytest.approx({"a": first, "b": first + 100 - (0.4 + 0.6 / 4) * first})
    assert fact(run, "b", "restarts") <= 1  # from shares to a whole device of its own


def test_gpu_time_is_what_the_shares_were_worth() -> None:
    run = with_shares(70, until=100.0)

    assert facts(run, "gpu_seconds") == pytest.approx({"a": 100.0, "b": 100.0})
    assert run.summary["utilization"] == pytest.approx(1.0)
    assert [devices for _, _, devices, _ in spans(run, "a")] == [[]]


def test_shares_change_in_place() -> None:
    policy = each(lambda snapshot, k: {"option": V100, "share": 0.2 if snapshot.now < 50 else 0.8}, 50.0)
    run = simulate([job("a", options="v100:1=50", work=50)], CLUSTER, policy, costs="resume=60,move=60,resize=60")

    assert fact(run, "a", "finish") == pytest.approx(50.0 + 40.0 / 0.8)
    assert fact(run, "a", "gpu_seconds") == pytest.approx(50 * 0.2 + 50 * 0.8)
    assert (fact(run, "a", "restarts"), fact(run, "a", "preemptions")) == (0, 0)


def test_more_than_a_type_has_is_refused_type_by_type() -> None:
    three = {"a": {V100: 0.5, K80: 0.5}, "b": {V100: 0.5, K80: 0.25}, "c": {V100: 0.1}}
    policy = shares({3: three, 2: {"b": {V100: 1.0}, "c": {K80: 1.0}}})
    run = simulate([job(name, work=100, options=WAYS) for name in "abc"], CLUSTER, policy, until=100.0)

    assert fact(run, "c", "state") == "waiting"
    assert fact(run, "b", "state") == "running"


def test_a_gang_and_a_share_do_not_use_the_same_device() -> None:
    policy = each(lambda snapshot, k: {"option": V100, "share": 0.5 if snapshot.jobs.ids[k] == "half" else 1.0})
    run = simulate([job(name, work=50, options="v100:1=50") for name in ("half", "gang")], CLUSTER, policy)

    assert fact(run, "half", "finish") == pytest.approx(100.0)
    assert fact(run, "gang", "first_start") == pytest.approx(100.0)


def test_a_packed_pair_in_ideal_mode_uses_its_device_once() -> None:
    class Pair(PerformanceModel):
        def granted(self, gang: Gang) -> float | None:
            return 0.7 if gang.mates else None

    ways: list[dict[str, Any]] = [{"share": 0.5, "group": 0, "mode": Mode.SPACE}, {"share": 0.25}]
    policy = Says(lambda snapshot: [Assignment(k, V100, **way) for k in range(len(snapshot.jobs)) for way in ways])
    run = simulate([job(n, work=100, options=WAYS) for n in "ab"], CLUSTER, policy, performance=Pair(), until=90.0)

    assert run.summary["utilization"] == pytest.approx(0.5)  # 0.5 together and twice 0.25 of one of two devices
    assert run.tables.F[Job.DONE].tolist() == pytest.approx([90 * (0.5 * 0.7 + 0.25)] * 2)


def test_shares_shrink_when_a_node_is_lost() -> None:
    run = with_shares(100, node_events=[NodeEvent(20.0, "node1", "down")], until=60.0)

    assert facts(run, "state") == {"a": "waiting", "b": "waiting"}  # the policy still asks for a type that is gone
    assert spans(run, "a")[0][3] == "resources"
