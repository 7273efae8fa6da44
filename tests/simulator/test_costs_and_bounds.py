"""What starting costs, how long a gang must run, how late a decision comes, and where a run ends: by hand."""

from __future__ import annotations

import math
from random import Random

import pytest
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.core.errors import GantlineError, UsageError
from gantline.core.facts import Costs

LONG_AND_SHORT = [
    job_row("long"),
    job_row("short", 1, 20, at=10),
]


def finishes(policy="srtf", cluster="1x1", jobs=LONG_AND_SHORT, **more):
    run = simulate(jobs, cluster, policy, **more)
    return by_job(run, "finish"), run


def test_a_start_costs_once_and_a_resume_every_time():
    """long starts (5 s), works 5 s, is stopped at 10; short starts (5 s) and works 20 s; long resumes (7 s) and does the other 95."""
    ends, run = finishes(costs="start=5,resume=7")
    assert ends == {"short": 35, "long": 35 + 7 + 95}
    assert run.jobs["restarts"].to_list() == [1, 0]


def test_one_number_is_the_cost_of_everything():
    assert Costs.parse("30") == Costs(start=30, resume=30, resize=30, move=30)


@pytest.mark.parametrize("text", ["stat=3", "start=-1", "start=soon", "stop=4"])
def test_a_cost_that_is_none_is_refused(text):
    with pytest.raises(UsageError):
        Costs.parse(text)


def test_work_since_the_last_checkpoint_is_lost_with_the_node():
    from gantline.core.inputs import NodeEvent

    events = [NodeEvent(70.0, "node0", "down"), NodeEvent(80.0, "node0", "up")]
    jobs = [job_row("a")]
    ends, run = finishes("fifo", jobs=jobs, costs="checkpoint=30", node_events=events)
    assert ends["a"] == 80 + 40  # sixty seconds were saved
    assert run.jobs["work_lost"].item() == 10


def test_a_gang_may_not_be_stopped_before_its_minimum_run():
    ends, _ = finishes(min_run=60)
    assert ends == {"short": 80, "long": 120}


def test_a_decision_that_comes_late_is_committed_to_the_state_of_then():
    """Asked at 0, committed at 15: the short job came meanwhile and was not thought of. Asked again at once, it starts at 30."""
    ends, run = finishes(latency=15)
    assert run.jobs["first_start"].to_list() == [15, 30]
    assert ends["short"] == 50
    assert ends["long"] == 50 + 15 + 85  # asked at 50, resumed at 65 with 85 s to do


def test_a_run_ends_at_the_bound_and_says_who_was_left():
    _, run = finishes(until=50)
    states = by_job(run, "state")
    assert states == {"long": "running", "short": "completed"}
    assert run.summary["completed"] == 1
    assert run.allocations["end"].max() == 50


def test_a_job_that_never_came_is_in_the_future():
    _, run = finishes(jobs=[*LONG_AND_SHORT, job_row("late", 1, 1, at=500)], until=50)
    assert by_job(run, "state")["late"] == "future"


def test_a_tracked_window_ends_the_run_when_its_jobs_have_ended():
    jobs = [job_row(f"j{k}", 1, 5, at=10 * k) for k in range(100)]
    _, run = finishes("fifo", jobs=jobs, track=(2, 4))
    ended = run.jobs.filter(run.jobs["finish"].is_not_nan())["job"].to_list()
    assert ended == ["j0", "j1", "j2", "j3", "j4"]  # both ends are tracked


@pytest.mark.parametrize("track", [(5, 5), (-1, 4), (200, 300)])
def test_a_window_without_jobs_is_refused(track):
    with pytest.raises(GantlineError, match="track"):
        finishes("fifo", track=track)


def test_rounds_look_at_the_cluster_only_at_their_boundaries():
    """The finish is known when it happens, but devices are given out at whole rounds."""
    ends, run = finishes("fifo", round=60)
    assert ends == {"long": 100, "short": 140}
    assert run.jobs["first_start"].to_list() == [0, 120]


def test_an_estimate_too_low_is_raised_and_the_job_still_ends():
    ends, _ = finishes(estimates="noisy:2", seed=11)
    assert all(math.isfinite(end) for end in ends.values())


def test_history_learns_from_those_that_have_ended():
    """Short jobs of ana and long ones of bo: once both are known, ana's next job goes first."""
    jobs = [
        job_row("a0", 1, 10, user="ana"),
        job_row("b0", 1, 500, user="bo"),
        job_row("head", 1, 50, at=600, user="cy"),
        job_row("b1", 1, 500, at=601, user="bo"),
        job_row("a1", 1, 10, at=602, user="ana"),
    ]
    ends, _ = finishes("sjf", jobs=jobs, estimates="history")
    assert ends["a1"] < ends["b1"]
    guessed, _ = finishes("sjf", jobs=jobs[2:], estimates="history")
    assert guessed["b1"] < guessed["a1"]  # nothing is known: by arrival


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las"])
@pytest.mark.parametrize("latency", [7.0, 61.0])
def test_with_late_decisions_skipping_rounds_gives_what_stepping_through_them_gives(policy, latency):
    draws = Random(4)
    jobs = [job_row(f"j{k}", draws.choice([1, 1, 2, 4]), draws.randint(20, 600), at=60.0 * k + draws.randint(0, 59)) for k in range(14)]
    skipped, stepped = (simulate(jobs, "1x4", policy, round=60.0, latency=latency, step_all=every) for every in (False, True))
    assert skipped.summary["log_hash"] == stepped.summary["log_hash"]


@pytest.mark.parametrize("policy", ["tiresias", "fifo", "las"])
def test_a_duration_a_rounding_error_above_a_tick_ends(policy):
    jobs = [job_row("a", 1, 10.0000000001), job_row("b", 1, 5, at=3.3)]
    ends, run = finishes(policy, jobs=jobs, regime="tiresias", until=1000)
    assert run.summary["unfinished"] == 0
    assert max(ends.values()) < 20


def test_jobs_outlast_their_estimates_although_nobody_is_ever_stopped() -> None:
    jobs = [{"id": f"j{k}", "arrival": 10.0 * k, "gpus": 1 + k % 4, "duration": 500.0} for k in range(12)]
    runs = [simulate(jobs, "1x8", "fifo", round=60, estimates="noisy:0.5", record=stepped) for stepped in (False, True)]
    assert [run.summary["completed"] for run in runs] == [12, 12]
    assert runs[0].summary["log_hash"] == runs[1].summary["log_hash"]
