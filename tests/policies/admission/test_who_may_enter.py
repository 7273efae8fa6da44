"""Admission: everybody, a limit on load as in Blox, quotas per user and queue."""

from __future__ import annotations

import math

import pytest
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.core.errors import GantlineError, UsageError
from gantline.policies.admission.rules import find_admission


def admitted(jobs, admission, cluster="1x4", **more):
    run = simulate(jobs, cluster, "fifo", admission=admission, **more)
    return by_job(run, "first_start"), run.summary


def jobs(*sizes, **more):
    return [{"job": f"j{k}", "arrival": k, "gpus": size, "duration": 100, **more} for k, size in enumerate(sizes)]


def test_accept_all_lets_everybody_in():
    starts, _ = admitted(jobs(2, 2, 2), "accept-all")
    assert starts == {"j0": 0, "j1": 1, "j2": 100}


def test_the_load_limit_is_overshot_by_one_job_because_the_test_comes_first():
    """Four GPUs, limit 1.0: j0 and j1 ask for four; j2 enters because four is not above four; j3 waits outside until somebody ends."""
    run = simulate(jobs(2, 2, 2, 1), "1x4", "smallest", admission="load-limit:1.0")
    starts = by_job(run, "first_start")
    assert starts["j3"] == 100  # smallest first would have run it at once, had it been let in


def test_without_a_limit_the_same_job_runs_at_once():
    run = simulate(jobs(2, 2, 2, 1), "1x4", "smallest", admission="accept-all")
    assert by_job(run, "first_start")["j3"] == 3


def test_a_users_quota_holds_back_that_user_only():
    crowd = [{**job, "user": "ana"} for job in jobs(2, 2)] + [job_row("other", 2, 10, at=5, user="bo")]
    starts, _ = admitted(crowd, "quota:user=2")
    assert starts == {"j0": 0, "j1": 100, "other": 5}


def test_a_queues_quota_holds_back_that_queue_only():
    crowd = [{**job, "queue": "batch"} for job in jobs(2, 2)] + [job_row("other", 2, 10, at=5, queue="test")]
    starts, _ = admitted(crowd, "quota:queue=3")
    assert starts == {"j0": 0, "j1": 100, "other": 5}


def test_a_job_larger_than_its_users_quota_never_starts_and_does_not_block_the_others():
    crowd = [{**job, "user": "ana"} for job in jobs(1, 4, 1)]
    starts, _ = admitted(crowd, "quota:user=2")
    assert math.isnan(starts.pop("j1"))
    assert starts == {"j0": 0, "j2": 2}


@pytest.mark.parametrize("text", ["load-limit:much", "load-limit:-1", "quota:team=3", "quota:user=x", "bouncer"])
def test_what_is_no_rule_is_refused_with_a_remedy(text):
    with pytest.raises(GantlineError) as told:
        find_admission(text)
    assert "--admission" in str(told.value)
    assert isinstance(told.value, UsageError) or "bouncer" in text
