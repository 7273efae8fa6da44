"""Sampling, scaling, shifting and cutting give new traces and leave the old one alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.traces.sample import sample, scale, shift, window
from gantline.traces.trace import Trace


def trace(count: int = 100) -> Trace:
    return Trace.from_records(
        {"job": f"j{i}", "arrival": 10.0 * i, "gpus": 1 + i % 8, "duration": 60.0, "deadline": 10.0 * i + 100} for i in range(count)
    )


def test_a_sample_is_a_subset_in_order_and_follows_its_seed() -> None:
    whole = trace()
    tenth = sample(whole, fraction=0.1, seed=7)
    assert len(tenth) == 10
    assert tenth.frame["arrival"].is_sorted()
    assert set(tenth.frame.rows()) < set(whole.frame.rows())
    assert tenth == sample(whole, n=10, seed=7)
    assert tenth != sample(whole, n=10, seed=8)
    assert tenth.notes == ("a sample of 10 of 100 jobs (seed 7)",)
    assert sample(whole, n=100) == whole


def test_every_job_has_the_same_chance() -> None:
    whole = trace(10)
    counts = dict.fromkeys(whole.frame["job"], 0)
    for seed in range(400):
        for job in sample(whole, n=5, seed=seed).frame["job"]:
            counts[job] += 1
    assert min(counts.values()) > 140
    assert max(counts.values()) < 260


def test_scaling_divides_the_time_between_arrivals() -> None:
    twice = scale(trace(), load=2)
    assert twice.frame["arrival"].to_list() == [5.0 * i for i in range(100)]
    assert twice.frame["duration"].to_list() == [60.0] * 100
    assert (twice.frame["deadline"] - twice.frame["arrival"]).to_list() == [100.0] * 100
    assert scale(twice, load=0.5) == trace()


def test_shifting_moves_arrivals_and_deadlines() -> None:
    later = shift(trace(), by=5.5)
    assert later.frame["arrival"][0] == 5.5
    assert later.frame["deadline"][0] == 105.5
    assert shift(later, by=-5.5) == trace()


def test_a_window_begins_at_zero_and_leaves_out_its_end() -> None:
    part = window(trace(), start=100, end=150)
    assert part.frame["job"].to_list() == ["j10", "j11", "j12", "j13", "j14"]
    assert part.frame["arrival"].to_list() == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert part.frame["deadline"].to_list() == [100.0, 110.0, 120.0, 130.0, 140.0]
    assert window(trace()) == trace()


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(0, 1000))
def test_adjoining_windows_hold_every_job_once(a: float, b: float, c: float) -> None:
    whole = trace()
    first, second, third = sorted((a, b, c))
    jobs: list[str] = []
    for start, end in ((-1.0, first), (first, second), (second, third), (third, math.inf)):
        if whole.frame["arrival"].is_between(start, end, closed="left").any():
            jobs += window(whole, start=start, end=end).frame["job"].to_list()
    assert jobs == whole.frame["job"].to_list()


def test_requests_that_make_no_sense_are_refused() -> None:
    for call, said in (
        (lambda: sample(trace()), "either a number"),
        (lambda: sample(trace(), n=3, fraction=0.5), "either a number"),
        (lambda: sample(trace(), n=101), "cannot take 101 of 100"),
        (lambda: sample(trace(), fraction=1.5), "at most 1"),
        (lambda: scale(trace(), load=0), "not above 0"),
        (lambda: scale(trace(), load=math.nan), "not above 0"),
        (lambda: shift(trace(), by=-1), "before 0"),
        (lambda: window(trace(), start=5000), "arrivals lie between 0 and 990"),
        (lambda: window(trace(), start=50, end=50), "no job arrives"),
    ):
        with pytest.raises(UsageError, match=said):
            call()
