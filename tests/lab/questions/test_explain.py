"""Why a job waits, who is ahead, and what would start it: small clusters on which the answer is plain."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.typed import typed

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Jobs
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.lab.questions import explain, forecast
from gantline.lab.questions.asked import answer
from gantline.lab.questions.explain import submission
from gantline.lab.questions.forecast import Setup, place_of
from gantline.lab.questions.newcomers import like_the_past
from gantline.models.uncertainty import FEWEST, Uncertainty
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


# Others may come, as they came in the past: a forecast says whether it counts on that.

PAST = [{"job": str(k), "arrival": 20.0 * k, "gpus": 2, "duration": 10.0, "user": "ann"} for k in range(12)]  # half of the machine's time
NOW = {"now": 1000, "cluster": "1x2", "jobs": [{"id": "long", "gpus": 2, "estimate": 400, "service": 0, "devices": [0, 1]}]}
ASK: dict[str, Any] = {"ask": "forecast", "snapshot": NOW, "settings": {}, "sigma": 0.0, "samples": 3}


def finish(policy: str, **more: Any) -> float:
    return float(answer({**ASK, "policy": policy, **more})["jobs"][0]["finish_p50"])


def test_newcomers_pass_a_long_job_where_the_policy_lets_them() -> None:
    assert finish("srtf") == finish("fifo") == pytest.approx(1400.0)
    assert finish("fifo", newcomers=PAST) == pytest.approx(1400.0), "whoever comes later waits"
    # every 20 s somebody of 10 s passes, until what is left is less than that
    assert finish("srtf", newcomers=PAST) == pytest.approx(1400.0 + 10.0 * 40, abs=30.0)


def test_an_answer_says_which_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer({**ASK, "policy": "fifo"})["over"] == "work by estimates taken as true, no new jobs"
    told = answer({**ASK, "policy": "fifo", "newcomers": PAST})
    assert "with newcomers as in the past" in told["over"]
    assert told["lines"][-1].endswith("with newcomers as in the past")
    (tmp_path / "now.json").write_text(json.dumps(NOW), encoding="utf-8")
    (tmp_path / "past.csv").write_text(
        "job,arrival,gpus,duration\n" + "".join(f"{one['job']},{one['arrival']},2,10\n" for one in PAST), encoding="utf-8"
    )
    asked = f"--snapshot {tmp_path}/now.json --present srtf --samples 2 --newcomers"
    for verb in ("forecast", "what-if --policy fifo"):
        assert typed(f"{verb} {asked} {tmp_path}/past.csv") == 0
        assert "with newcomers as in the past" in capsys.readouterr().out
    assert typed(f"forecast {asked} past") == 2
    assert "name a table of jobs" in capsys.readouterr().err


def test_they_come_in_blocks_with_the_gaps_that_there_were() -> None:
    """Bursts stay bursts: gaps of one second within, of a hundred between."""
    burst = [{"job": str(k), "arrival": 100.0 * (k // 4) + k % 4, "gpus": 8, "duration": 5.0 + k} for k in range(16)]
    coming = like_the_past(burst, decode_snapshot(NOW), make_policy("fifo"), Uncertainty(0.3))
    assert coming.span == pytest.approx(800.0)
    found = coming(np.random.default_rng(1))
    times = [one.time for one in found]
    assert times == sorted(times)
    assert 1000.0 < times[0] <= times[-1] <= 1800.0
    assert {round(gap) for gap in np.diff(times)} <= {1, 20, 97}, "the first has the mean of all gaps before it"
    assert {one.job["gpus"] for one in found} == {2}, "as many as there are"
    assert all(one.work != one.job["estimate"] for one in found)
    assert [one.time for one in coming(np.random.default_rng(1))] == times


@pytest.mark.parametrize(("past", "told"), [(PAST[:9], "only 9 jobs are known"), ([{**one, "arrival": 5.0} for one in PAST], "at once")])
def test_a_past_that_says_nothing_is_refused(past: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(RefusedError, match=told):
        finish("fifo", newcomers=past)


def test_a_look_shows_how_often_jobs_come_lately() -> None:
    """One came every hundred seconds, and since a while every ten; what is known of them is their limit."""
    arrivals = [*(100.0 * k for k in range(40)), *(4000.0 + 10.0 * k for k in range(50))]
    look = [{"arrival": at, "gpus": 1, "estimate": 60.0} for at in arrivals]
    now = {**NOW, "now": 4500, "jobs": [{"id": "long", "gpus": 2, "estimate": 500}]}
    coming = like_the_past(look, decode_snapshot(now), make_policy("fifo"), Uncertainty(ratios=(0.5,) * 20))
    futures = [coming(np.random.default_rng(seed)) for seed in range(40)]
    counts = [len(one) for one in futures]
    assert min(counts) < 40 < 90 < max(counts), "as on average over all of it, and as lately"
    assert {(one.job["estimate"], one.work) for one in futures[0]} == {(60.0, 30.0)}
    assert all(
        one.time <= 4700.0 for one in like_the_past(look, decode_snapshot(now), make_policy("fifo"), until=4600.0)(np.random.default_rng(0))
    )


def test_a_quiet_spell_up_to_now_counts_among_the_gaps() -> None:
    """Twelve came within two minutes, and nobody in the half hour since: the next half hour does not bring one every ten seconds."""
    look = [{"arrival": 10.0 * k, "gpus": 1, "estimate": 60.0} for k in range(12)]
    now = {**NOW, "now": 1910, "jobs": [{"id": "long", "gpus": 2, "estimate": 900}]}
    coming = like_the_past(look, decode_snapshot(now), make_policy("fifo"))
    assert coming.span == pytest.approx(1800.0)
    assert np.mean([len(coming(np.random.default_rng(seed))) for seed in range(40)]) < 60


def test_newcomers_come_within_a_horizon_that_begins_now() -> None:
    """A service that has run for as long as the horizon expects as many as one that looks ahead without end."""
    assert finish("srtf", newcomers=PAST, horizon=1000.0) == finish("srtf", newcomers=PAST) > 1700.0


# Draws of work: around the estimate, within what is known, never less than what is done.


def draws(uncertainty, count=4000, **job):
    """So many draws for a job, made as some draws for jobs alike."""
    alike = min(count, 250)
    jobs = [{"id": f"a{k}", "estimate": 100.0, **job} for k in range(alike)]
    present = decode_snapshot({"now": 0, "cluster": "1x4", "jobs": jobs})
    return uncertainty.draw(present, seed=0, first=0, count=-(-count // alike)).ravel()[:count]


def test_around_the_estimate_with_the_width_that_was_stated():
    found = np.log(draws(Uncertainty(sigma=0.3)) / 100.0)
    assert abs(found.mean()) < 0.02
    assert found.std() == pytest.approx(0.3, rel=0.05)


def test_no_width_is_the_estimate_itself():
    assert draws(Uncertainty(sigma=0.0), 5) == pytest.approx([100.0] * 5)


def test_a_range_that_came_with_the_estimate_is_two_deviations_either_way():
    found = draws(Uncertainty(sigma=5.0), metrics={"estimate.low": 50.0, "estimate.high": 200.0})
    inside = ((found > 50) & (found < 200)).mean()
    assert inside == pytest.approx(0.954, abs=0.015)


def test_what_is_done_bounds_it_from_below():
    """The distribution above what is done is the part of the whole one that is left."""
    given = draws(Uncertainty(sigma=0.5), done=120.0, service=120.0)
    whole = draws(Uncertainty(sigma=0.5), 12000)
    left = whole[whole > 120.0]
    assert given.min() >= 120.0
    assert np.quantile(given, [0.25, 0.5, 0.9]) == pytest.approx(np.quantile(left, [0.25, 0.5, 0.9]), rel=0.05)


def test_who_has_outlived_every_guess_needs_as_long_again_on_average():
    found = draws(Uncertainty(sigma=0.0), done=400.0, service=400.0)
    assert found.min() >= 400.0
    assert found.mean() == pytest.approx(800.0, rel=0.05)


def test_the_past_takes_over_when_there_is_enough_of_it():
    shown = tuple([0.5] * FEWEST + [2.0] * FEWEST)
    found = draws(Uncertainty(sigma=0.3, ratios=shown), 400)
    assert np.isin(found, (50.0, 200.0)).mean() > 0.95, "but for the one span of the table in which both meet"
    assert np.quantile(found, [0.3, 0.7]).tolist() == [50.0, 200.0]
    assert set(draws(Uncertainty(sigma=0.3, ratios=shown), 50, done=60.0, service=60.0)) == {200.0}
    assert Uncertainty(ratios=shown).source == "what is known of true work over estimates"
    assert "log-normal" in Uncertainty(ratios=shown[:3]).source


@pytest.mark.parametrize("sigma", [-1.0, float("nan"), float("inf")])
def test_a_width_that_is_none_is_refused(sigma):
    with pytest.raises(UsageError, match="width"):
        Uncertainty(sigma=sigma)


def test_futures_are_drawn_by_their_number_alone() -> None:
    snapshot = decode_snapshot({"now": 0, "cluster": "1x4", "jobs": [{"id": "a", "estimate": 100.0}, {"id": "b", "estimate": 50.0}]})
    many = Uncertainty().draw(snapshot, seed=3, first=0, count=8)
    assert (Uncertainty().draw(snapshot, seed=3, first=5, count=2) == many[5:7]).all()
    assert (Uncertainty().draw(snapshot, seed=4, first=0, count=8) != many).all()
    assert len(set((many / [100.0, 50.0]).ravel().tolist())) == 16, "every job of every future has a draw of its own"


# By which draw one more future has come, with at least a given chance.


@pytest.mark.parametrize("draws", [9, 10, 11, 12, 20, 31, 40, 199, 200])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_one_more_future_is_as_likely_in_each_gap_between_the_draws(draws: int, share: float) -> None:
    place = place_of(share, draws)
    assert (place + 1) / (draws + 1) >= share  # there are one gap more than draws, and this many lie before it
    assert place / (draws + 1) < share


def test_few_draws_cannot_promise_and_give_their_last() -> None:
    assert [place_of(0.9, draws) for draws in (1, 5, 8)] == [0, 4, 7]
