"""Tiresias: queues by attained GPU-time, first started first inside, promotion against starvation, and the Gittins order."""

from __future__ import annotations

import numpy as np
import pytest
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy
from gantline.systems.tiresias.policies import gittins_index


def finishes(jobs, cluster, **settings):
    run = simulate(jobs, cluster, "tiresias", settings=settings, round=10)
    return by_job(run, "finish"), run.summary


def test_a_job_that_has_had_its_quantum_gives_way_to_one_that_has_not():
    """a falls into the second queue after 100 GPU-seconds; b, in the first, runs up to its own hundred, then a is first again."""
    jobs = [job_row("a", 1, 300), job_row("b", 1, 200, at=150)]
    ends, summary = finishes(jobs, "1x1", limits="100")
    assert ends == {"a": 400, "b": 500}
    assert summary["preemptions"] == 2


def test_inside_a_queue_the_first_started_keeps_running():
    jobs = [job_row(name, 1, 80, at=at) for at, name in enumerate("abc")]
    ends, summary = finishes(jobs, "1x1", limits="100")
    assert ends == {"a": 80, "b": 160, "c": 240}
    assert summary["preemptions"] == 0


def test_wide_gangs_reach_the_limit_sooner_unless_time_counts():
    """Four GPUs use 100 GPU-seconds in 25 s, and 100 s of time in 100 s."""
    jobs = [job_row("wide", 4, 90), job_row("narrow", 1, 40, at=5)]
    assert finishes(jobs, "1x4", limits="100", service="gpu-time")[0]["narrow"] == 70  # wide falls at 25 s, seen at the next round
    assert finishes(jobs, "1x4", limits="100", service="time")[0]["narrow"] == 130


def test_promotion_brings_back_whoever_has_waited_long():
    """Newcomers keep coming; without promotion the demoted job waits for all of them."""
    jobs = [job_row("old", 1, 200)]
    jobs += [job_row(f"new{k}", 1, 90, at=100 + 90 * k) for k in range(10)]
    without, _ = finishes(jobs, "1x1", limits="100")
    promoted, _ = finishes(jobs, "1x1", limits="100", promote="2")
    assert without["old"] == 1100
    assert promoted["old"] < 500


def test_a_promoted_job_of_several_gpus_has_its_whole_first_quantum_again():
    """In GPU-seconds all is twice as much on two GPUs, the limit too: the schedule is that of one GPU."""
    jobs = [{"job": "old", "arrival": 0, "duration": 200}] + [
        {"job": f"new{k}", "arrival": 100 + 90 * k, "duration": 90} for k in range(10)
    ]
    one, _ = finishes([{**job, "gpus": 1} for job in jobs], "1x1", limits="100", promote="2")
    two, _ = finishes([{**job, "gpus": 2} for job in jobs], "1x2", limits="200", promote="2")
    assert two == one


def decided(jobs, **settings):
    """The jobs in the order of one decision at 1,000 s, and what is remembered."""
    snapshot = decode_snapshot({"cluster": "1x1", "now": 1000, "jobs": jobs})
    plan = make_policy("tiresias", {"compat": "none", **settings}).decide(snapshot)
    return [snapshot.jobs.ids[at] for at in np.argsort(plan.ranking.key)], plan.memory


@pytest.mark.parametrize("settings", [{}, {"promote": 1e9}], ids=["declared", "with promotion"])
def test_whoever_has_just_reached_the_limit_is_behind_who_never_ran_and_they_behind_who_has_started(settings):
    jobs = [{"id": "at limit", "service": 100}, {"id": "newcomer", "arrival": 5}, {"id": "started", "arrival": 900, "service": 99}]
    assert decided(jobs, limits="100", **settings)[0] == ["started", "newcomer", "at limit"]


def test_promotion_is_to_the_first_queue_and_for_those_who_wait():
    jobs = [
        {"id": "a waits", "service": 200, "estimate": 900},
        {"id": "b runs", "service": 200, "estimate": 900, "devices": [0]},
        {"id": "c newcomer", "arrival": 990},
        {"id": "d waits, after more", "service": 600, "estimate": 900},
    ]
    order, memory = decided(jobs, limits="100", promote="2")
    assert order[:2] == ["a waits", "c newcomer"]
    assert len(memory) == 1  # that is the first one: it has waited for more than twice the time it ran


def test_the_gittins_index_prefers_the_age_at_which_most_jobs_end():
    """Of ten past jobs nine needed 10 and one 1,000: a fresh job is likely to end soon, one that has passed 10 is not."""
    sample = np.array([10.0] * 9 + [1000.0])
    fresh, passed = gittins_index(sample, np.array([0.0, 11.0]), np.array([100.0, 100.0]))
    assert fresh == pytest.approx(0.9 / ((9 * 10 + 100) / 10))
    assert passed == 0.0


def test_gittins_orders_a_queue_by_the_index_of_the_sample():
    jobs = [job_row("aged", 1, 90), job_row("fresh", 1, 10, at=20)]
    ends, _ = finishes(jobs, "1x1", limits="100", gittins="true", sample="10,10,10,10,1000")
    assert ends == {"fresh": 30, "aged": 100}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"limits": "3600,60"}, "do not rise"),
        ({"limits": "0,60"}, "do not rise"),
        ({"promote": "0"}, "above 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused(settings, told):
    with pytest.raises(UsageError, match=told):
        finishes([job_row("a", 1, 1)], "1x1", **settings)
