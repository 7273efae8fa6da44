"""Why a job waits, who is ahead, and what would start it: small clusters on which the answer is plain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from gantline.core.errors import NotFoundError
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Jobs
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.lab.questions import explain, forecast
from gantline.lab.questions.asked import answer
from gantline.lab.questions.explain import submission
from gantline.lab.questions.forecast import Setup
from gantline.models.uncertainty import Uncertainty
from gantline.policies.registry import make_policy


@dataclass(frozen=True)
class ByPriority(OrderPolicy):
    def key(self, snapshot):
        return -snapshot.jobs.priority


@dataclass(frozen=True)
class ByQueue(OrderPolicy):
    preempt = False

    def key(self, snapshot):
        weights = [snapshot.queue_tree[name].weight for name in snapshot.queues]
        return -np.array(weights)[snapshot.jobs.queue]


SURE = Setup(uncertainty=Uncertainty(sigma=0.0), samples=1)
JOBS = [
    {"id": "big", "gpus": 4, "estimate": 4000, "service": 500, "devices": [0, 1, 2, 3]},
    {"id": "small", "gpus": 2, "estimate": 300, "arrival": 100, "devices": [4, 5]},
    {"id": "new", "gpus": 4, "estimate": 700, "arrival": 590},
    {"id": "wide", "gpus": 8, "estimate": 60, "arrival": 595},
]


def instant(jobs=JOBS, cluster="2x4", **more):
    return decode_snapshot({"now": 600, "cluster": cluster, "jobs": jobs, **more})


def test_a_job_that_waits_for_room():
    found = explain(instant(), make_policy("fifo"), "new", SURE)
    assert (found.act, found.why) == ("waits", "not enough free devices")
    assert [(one.job, one.holds) for one in found.ahead] == [("small", True), ("big", True)]
    assert [(change.what, change.value) for change in found.changes] == [("gpus", 2)]
    assert found.waits_for == ("small",)
    assert found.expected.start_p50 == pytest.approx(900)
    assert found.expected.finish_p50 == pytest.approx(1600)
    text = "\n".join(found.lines())
    assert "with 2 GPUs in place of 4 it would start now" in text
    assert "when small ends" in text


def test_a_job_that_waits_for_cpus_is_told_how_many_are_taken():
    hog = {"id": "hog", "gpus": 1, "devices": [0], "estimate": 900, "options": [{"gpus": 1, "cpus": 7}]}
    waits = {"id": "waits", "gpus": 1, "estimate": 60, "options": [{"gpus": 1, "cpus": 4}]}
    snapshot = decode_snapshot({"now": 600, "cluster": "1x4/8c", "jobs": [hog, waits]})
    assert explain(snapshot, make_policy("fifo"), "waits").why == (
        "enough devices are free, but CPUs of their nodes are taken: it asks for 4 CPUs beside each device, and node0 has 1 of 8 free"
    )


def test_a_job_behind_one_that_does_not_fit():
    found = explain(instant(), make_policy("fifo"), "wide", SURE)
    assert "behind a job" in found.why
    assert [one.job for one in found.ahead if not one.holds] == ["new"]


def test_a_job_that_the_next_decision_starts():
    found = explain(instant(), make_policy("srtf"), "wide", SURE)
    assert found.act == "starts"
    assert found.devices == tuple(range(8))
    assert found.changes == ()
    assert found.expected.finish_p50 == pytest.approx(660)


def test_another_type_would_do():
    jobs = [
        {"id": "a", "gpus": 2, "devices": [0, 1]},
        {"id": "b", "gpus": 2, "arrival": 5, "options": [{"type": "v100", "gpus": 2}]},
    ]
    found = explain(instant(jobs, "v100:1x2,k80:1x2"), make_policy("fifo"), "b", SURE)
    assert ("type", "k80") in [(change.what, change.value) for change in found.changes]


def test_priority_would_do_where_the_policy_reads_it():
    jobs = [{"id": "a", "gpus": 2, "priority": 3}, {"id": "b", "gpus": 2, "arrival": 5}]
    urgent = explain(instant(jobs, "1x2"), make_policy("sjf"), "b", SURE)
    assert not [change for change in urgent.changes if change.what == "priority"]  # shortest first does not read it
    found = explain(instant(jobs, "1x2"), ByPriority(), "b", SURE)
    assert [(change.what, change.value) for change in found.changes if change.what == "priority"] == [("priority", 4.0)]


def test_another_queue_would_do():
    jobs = [{"id": f"a{k}", "gpus": 1, "queue": "full", "devices": [k]} for k in range(2)]
    jobs += [{"id": "b", "gpus": 2, "queue": "full", "arrival": 5}, {"id": "c", "gpus": 2, "queue": "other", "arrival": 6}]
    tree = [{"name": "full", "weight": 1}, {"name": "other", "weight": 9}]
    found = explain(instant(jobs, "1x4", queue_tree=tree, queues=["full", "other"]), ByQueue(), "b", SURE)
    assert ("queue", "other") in [(change.what, change.value) for change in found.changes]


def test_the_snapshot_is_left_alone_and_an_unknown_job_is_named():
    present = instant()
    before = encode_snapshot(present)
    explain(present, make_policy("las"), "new", SURE)
    assert encode_snapshot(present) == before
    with pytest.raises(NotFoundError, match="no job 'nwe'"):
        explain(present, make_policy("fifo"), "nwe", SURE)


def test_columns_are_gathered_as_often_for_many_jobs_as_for_few(monkeypatch):
    reads = []
    plain = Jobs.ids.fget
    monkeypatch.setattr(Jobs, "ids", property(lambda self: (reads.append(1), plain(self))[1]))

    def counted(waiting):
        jobs = [JOBS[0], *({"id": str(k), "gpus": 8, "estimate": 60, "arrival": 100 + k} for k in range(waiting))]
        reads.clear()
        found = explain(instant(jobs), make_policy("fifo"), str(waiting - 1), replace(SURE, samples=0))
        assert len(found.ahead) == waiting
        return len(reads)

    assert counted(40) == counted(10)


def test_behind_a_job_of_unknown_length_no_start_is_invented():
    """The same present with and without the estimate of the job that runs."""
    runs = {"id": "runs", "gpus": 2, "devices": [0, 1], "estimate": 3600.0}
    wide = {"gpus": 2, "estimate": 60.0}
    for blind in ([], ["runs"]):
        snapshot = decode_snapshot({"now": 600, "cluster": "1x2", "jobs": [runs], "unestimated": blind})
        answer = submission(snapshot, make_policy("fifo"), wide, Setup())
        assert answer["position"] == 1
        assert (answer["expected"] is None) is bool(blind)
        assert any(line.startswith("expected start in ") for line in answer["lines"]) is not bool(blind)
        assert ("1 job ahead, 1 of unknown length: its start is not known" in answer["lines"]) is bool(blind)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "afs", "themis", "edf", "optimus", "voda.afs_l"])
def test_the_quota_that_holds_a_job_back_is_named_with_who_uses_it_under_every_policy(policy):
    jobs = [{"id": f"a{k}", "gpus": 1, "queue": "a", "devices": [k], "estimate": 900} for k in range(2)]
    jobs += [{"id": "waits", "gpus": 1, "queue": "a", "arrival": 5, "estimate": 900}]
    tree = [{"name": "a", "quota": 2, "borrow": 0}]
    found = explain(instant(jobs, "1x4", queue_tree=tree, queues=["a"]), make_policy(policy), "waits", replace(SURE, samples=0))
    assert (found.act, found.why) == ("waits", "queue 'a' may hold 2; it holds 2: a0 (1), a1 (1)")


def test_what_is_known_of_the_jobs_ahead_is_said_in_place_of_a_start():
    """On h100 one job of unknown length runs before two that wait; on a100 every length is known."""

    def job(name, kind, **more):
        return {"id": name, "gpus": 2, "estimate": 7200.0, "options": [{"type": kind, "gpus": 2, "rate": 1.0}], **more}

    nodes = [{"name": kind, "type": kind, "gpus": 2} for kind in ("h100", "a100")]
    jobs = [job("blind", "h100", devices=[0, 1]), job("known", "a100", devices=[2, 3])]
    jobs += [job(name, kind, arrival=place) for place, (name, kind) in enumerate([("one", "h100"), ("two", "h100"), ("free", "a100")])]
    now = {"now": 600, "cluster": {"nodes": nodes}, "jobs": jobs, "unestimated": ["blind"]}
    question = {"snapshot": now, "policy": "fifo", "settings": {"backfill": "skip"}, "samples": 4, "sigma": 0.0}
    told = answer({**question, "ask": "forecast"})
    found = {one["job"]: one for one in told["jobs"]}
    assert {name for name, one in found.items() if one["start_p50"] is None} == {"one", "two"}
    assert {name for name, one in found.items() if one["finish_p50"] is None} == {"blind", "one", "two"}
    assert {name for name, one in found.items() if not one["estimated"]} == {"blind"}
    assert [found[name]["unknown"] for name in ("one", "two", "free")] == [
        "1 job ahead, 1 of unknown length",
        "2 jobs, 4 GPU-hours ahead, 1 of unknown length",
        "",
    ]
    assert "two: 2 jobs, 4 GPU-hours ahead, 1 of unknown length: its start is not known" in told["lines"]
    assert "blind: runs; its end is not known: it has no estimate" in told["lines"]
    assert forecast(decode_snapshot(now), make_policy("fifo"), ["free"])[0].start_p50 > 600
    explained = answer({**question, "ask": "explain", "job": "two"})
    assert (explained["expected"]["start_p50"], explained["expected"]["unknown"]) == (None, found["two"]["unknown"])
    assert explained["lines"][-1] == "2 jobs, 4 GPU-hours ahead, 1 of unknown length: its start is not known"
