"""First come, first served, and the four ways to fill a gap: who may pass the wide job that waits for the whole cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import by_job, job_row

from gantline import simulate

# four GPUs; b needs all of them and must wait for a; c fits beside a and ends before a does, d does not end before
GAP = [
    job_row("a", 2),
    job_row("b", 4, 10, at=1),
    job_row("c", 1, 50, at=2),
    job_row("d", 1, 500, at=3),
]


def starts(jobs, backfill, cluster="1x4", **more):
    run = simulate(jobs, cluster, "fifo", settings={"backfill": backfill}, **more)
    return by_job(run, "first_start")


def test_without_backfill_nobody_passes_the_head():
    assert starts(GAP, "none") == {"a": 0, "b": 100, "c": 110, "d": 110}


def test_skip_lets_anyone_who_fits_pass_and_the_head_pays():
    assert starts(GAP, "skip") == {"a": 0, "b": 503, "c": 2, "d": 3}


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_a_reservation_lets_only_those_pass_who_end_in_time(backfill):
    assert starts(GAP, backfill) == {"a": 0, "b": 100, "c": 2, "d": 110}


def test_easy_protects_the_first_in_line_only_and_conservative_everybody():
    """Beside a, b holds the only reservation under EASY: d passes c, which conservative backfilling would not allow."""
    jobs = [
        job_row("a", 3),
        job_row("b", 2, at=1),  # at 100
        job_row("c", 4, at=2),  # after b: at 200
        job_row("d", 1, 300, at=3),  # now: fits beside a and b, but then c has only three GPUs at 200
    ]
    assert starts(jobs, "easy") == {"a": 0, "b": 100, "c": 303, "d": 3}
    assert starts(jobs, "conservative")["c"] == 200
    assert starts(jobs, "conservative")["d"] > 3


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_promises_are_kept_per_device_type(backfill):
    """Idle k80s are no room for a job that wants v100s, and a job for k80s does not delay it."""
    jobs = [
        job_row("a", 2, type="v100"),
        job_row("b", 4, 10, at=1, type="v100"),
        job_row("c", 2, 500, at=2, type="v100"),  # would delay b
        job_row("d", 2, 500, at=3, type="k80"),
    ]
    assert starts(jobs, backfill, "v100:1x4,k80:1x4") == {"a": 0, "b": 100, "c": 110, "d": 3}


def test_an_estimate_too_low_delays_the_head_but_stops_nobody():
    """Backfilled by a wrong estimate, a gang runs on; the reservation moves."""
    run = simulate(GAP, "1x4", "fifo", settings={"backfill": "easy"}, estimates="noisy:3", seed=4)
    assert run.summary["preemptions"] == 0
    assert run.summary["completed"] == 4


def test_backfill_that_needs_estimates_is_refused_without_them():
    with pytest.raises(Exception, match="needs remaining"):
        starts(GAP, "easy", estimates="none")
    assert starts(GAP, "skip", estimates="none")["c"] == 2


JOBS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(1, 90)), min_size=1, max_size=12)


@given(JOBS)
def test_with_right_estimates_conservative_backfilling_delays_nobody(drawn):
    """Against plain first come, first served, every job starts no later (Mu'alem, Feitelson 2001, section 2)."""
    ordered = sorted(drawn, key=lambda job: job[0])
    jobs = [job_row(f"j{k}", size, length, at=at) for k, (at, size, length) in enumerate(ordered)]
    plain, filled = starts(jobs, "none"), starts(jobs, "conservative")
    assert all(filled[job] <= plain[job] + 1e-6 for job in plain)


def test_a_job_that_does_not_fit_starts_smaller_only_if_it_may_shrink() -> None:
    jobs = [
        job_row("holder", 2),
        job_row("elastic", 4, 40.0, at=1.0, options="gpu:4=40|gpu:2=80"),
    ]
    starts = {way: simulate(jobs, "1x4", "fifo", settings={"backfill": way}).jobs["first_start"].to_list() for way in ("skip", "shrink")}
    assert starts == {"skip": [0.0, 100.0], "shrink": [0.0, 1.0]}
