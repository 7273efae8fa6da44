"""The classic orders on one GPU and on two: who is served when, by hand; and rounds that may be skipped."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.jobs import by_job, job_row

from gantline import simulate

LONG_FIRST = [
    job_row("long"),
    job_row("middle", 1, 50, at=10),
    job_row("short", 1, 5, at=20),
]


def finishes(jobs, policy, cluster="1x1", **more):
    run = simulate(jobs, cluster, policy, **more)
    return by_job(run, "finish"), run.summary


def test_sjf_lets_the_one_that_runs_run():
    ends, summary = finishes(LONG_FIRST, "sjf")
    assert ends == {"long": 100, "short": 105, "middle": 155}
    assert summary["preemptions"] == 0


def test_srtf_stops_the_longer_one_each_time():
    ends, summary = finishes(LONG_FIRST, "srtf")
    assert ends == {"short": 25, "middle": 65, "long": 155}
    assert summary["preemptions"] == 2


def test_srtf_leaves_a_job_alone_that_has_less_left_than_the_newcomer_needs():
    jobs = [job_row("old"), job_row("new", 1, 50, at=60)]
    ends, summary = finishes(jobs, "srtf")
    assert ends == {"old": 100, "new": 150}
    assert summary["preemptions"] == 0


def test_srsf_weighs_remaining_time_by_gpus():
    """Thirty seconds on four GPUs are more service than a hundred on one."""
    jobs = [
        job_row("wide", 4, 30),
        job_row("narrow"),
    ]
    assert finishes(jobs, "srtf", "1x4")[0] == {"wide": 30, "narrow": 130}
    assert finishes(jobs, "srsf", "1x4")[0] == {"narrow": 100, "wide": 130}


def test_smallest_looks_at_gpus_alone():
    jobs = [
        job_row("wide", 2, 1),
        job_row("narrow"),
    ]
    assert finishes(jobs, "smallest", "1x2")[0] == {"narrow": 100, "wide": 101}


@pytest.mark.parametrize("policy", ["sjf", "srtf", "srsf", "smallest", "las", "tiresias", "fifo"])
def test_equals_go_by_arrival_and_then_by_their_place_in_the_trace(policy):
    jobs = [job_row(name, 1, 10) for name in "badc"]
    run = simulate(jobs, "1x1", policy, round=10)
    assert run.jobs.sort("finish")["job"].to_list() == ["b", "a", "d", "c"]


def test_a_wrong_estimate_changes_the_order_but_not_the_work():
    ends, _ = finishes(LONG_FIRST, "sjf", estimates="noisy:5", seed=3)
    assert max(ends.values()) == 155


# Least attained service: newcomers first, equals in turns.


def test_a_newcomer_runs_until_it_has_had_as_much_as_the_others():
    """At 60 s rounds: a has had 300 s when b comes; b catches up, then they take turns."""
    jobs = [job_row("a", 1, 600), job_row("b", 1, 240, at=300)]
    run = simulate(jobs, "1x1", "las", round=60)
    assert by_job(run, "finish") == {"a": 840, "b": 540}
    assert run.jobs["preemptions"].to_list() == [1, 0]


def test_two_equals_share_the_gpu_round_by_round():
    jobs = [job_row(name, 1, 180) for name in "ab"]
    run = simulate(jobs, "1x1", "las", round=60)
    assert run.allocations.sort("start")["job"].to_list() == list("ababab")
    assert sorted(run.jobs["finish"].to_list()) == [300, 360]


@pytest.mark.parametrize(("service", "first"), [("time", "wide"), ("gpu-time", "narrow")])
def test_service_is_seconds_or_gpu_seconds(service, first):
    """The wide job has run less time but used more GPUs."""
    jobs = [
        job_row("narrow", 1, 1000),
        job_row("wide", 4, 1000, at=100),
    ]
    run = simulate(jobs, "1x4", "las", settings={"service": service}, round=100, until=450)
    done = by_job(run, "service")
    assert (done["wide"] > 100) == (first == "wide")


# Rounds in which nothing can change are skipped by policies that divide and resize, with the same result as stepping through each.


@pytest.mark.parametrize("policy", ["gavel.max_min_fairness", "gavel.fifo", "optimus"])
def test_a_lone_long_job_in_short_rounds_is_asked_about_when_it_comes_and_goes(policy: str) -> None:
    run = simulate([{"job": "a", "arrival": 0, "gpus": 1, "duration": 1e5}], "1x4", policy, round=1)
    assert run.jobs["finish"].to_list() == [1e5]
    assert run.summary["decisions"] <= 3


@pytest.mark.parametrize("policy", ["gavel.max_min_fairness", "gavel.finish_time_fairness", "optimus"])
@pytest.mark.parametrize("seed", range(4))
def test_skipping_equals_stepping(policy: str, seed: int) -> None:
    draw, arrival, jobs = random.Random(seed), 0.0, []
    for number in range(5):
        arrival += draw.choice([0.0, 60.0, 400.0])
        sizes: dict[str, Any] = {"min_gpus": 1, "max_gpus": 4} if policy == "optimus" and draw.random() < 0.5 else {}
        size, duration = draw.randint(1, 3), float(draw.randint(50, 1500))
        sizes = sizes or {"min_gpus": size, "max_gpus": size}
        jobs.append({"job": f"j{number}", "arrival": arrival, "gpus": size, "duration": duration, **sizes})
    skipped, stepped = (simulate(jobs, "2x2", policy, round=60, costs="20", step_all=every) for every in (False, True))
    assert skipped.jobs.write_csv() == stepped.jobs.write_csv()
    assert skipped.summary["decisions"] <= stepped.summary["decisions"]
