"""The classic orders on one GPU and on two: who is served when, by hand."""

from __future__ import annotations

import pytest

from gantline import simulate

LONG_FIRST = [
    {"job": "long", "arrival": 0, "gpus": 1, "duration": 100},
    {"job": "middle", "arrival": 10, "gpus": 1, "duration": 50},
    {"job": "short", "arrival": 20, "gpus": 1, "duration": 5},
]


def finishes(jobs, policy, cluster="1x1", **more):
    run = simulate(jobs, cluster, policy, **more)
    return dict(run.jobs.select("job", "finish").iter_rows()), run.summary


def test_sjf_lets_the_one_that_runs_run():
    ends, summary = finishes(LONG_FIRST, "sjf")
    assert ends == {"long": 100, "short": 105, "middle": 155}
    assert summary["preemptions"] == 0


def test_srtf_stops_the_longer_one_each_time():
    ends, summary = finishes(LONG_FIRST, "srtf")
    assert ends == {"short": 25, "middle": 65, "long": 155}
    assert summary["preemptions"] == 2


def test_srtf_leaves_a_job_alone_that_has_less_left_than_the_newcomer_needs():
    jobs = [{"job": "old", "arrival": 0, "gpus": 1, "duration": 100}, {"job": "new", "arrival": 60, "gpus": 1, "duration": 50}]
    ends, summary = finishes(jobs, "srtf")
    assert ends == {"old": 100, "new": 150}
    assert summary["preemptions"] == 0


def test_srsf_weighs_remaining_time_by_gpus():
    """Thirty seconds on four GPUs are more service than a hundred on one."""
    jobs = [
        {"job": "wide", "arrival": 0, "gpus": 4, "duration": 30},
        {"job": "narrow", "arrival": 0, "gpus": 1, "duration": 100},
    ]
    assert finishes(jobs, "srtf", "1x4")[0] == {"wide": 30, "narrow": 130}
    assert finishes(jobs, "srsf", "1x4")[0] == {"narrow": 100, "wide": 130}


def test_smallest_looks_at_gpus_alone():
    jobs = [
        {"job": "wide", "arrival": 0, "gpus": 2, "duration": 1},
        {"job": "narrow", "arrival": 0, "gpus": 1, "duration": 100},
    ]
    assert finishes(jobs, "smallest", "1x2")[0] == {"narrow": 100, "wide": 101}


@pytest.mark.parametrize("policy", ["sjf", "srtf", "srsf", "smallest", "las", "tiresias", "fifo"])
def test_equals_go_by_arrival_and_then_by_their_place_in_the_trace(policy):
    jobs = [{"job": name, "arrival": 0, "gpus": 1, "duration": 10} for name in "badc"]
    run = simulate(jobs, "1x1", policy, round=10)
    assert run.jobs.sort("finish")["job"].to_list() == ["b", "a", "d", "c"]


def test_a_wrong_estimate_changes_the_order_but_not_the_work():
    ends, _ = finishes(LONG_FIRST, "sjf", estimates="noisy:5", seed=3)
    assert max(ends.values()) == 155
