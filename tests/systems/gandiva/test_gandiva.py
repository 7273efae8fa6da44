"""Gandiva's time slicing on the engine: turns, nobody cut short, nobody left out."""

from __future__ import annotations

import pytest

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.policies.registry import make_policy


def test_the_first_turn_of_a_job_that_starts_within_a_slice_is_the_rest_of_it() -> None:
    jobs = [
        {"job": name, "arrival": at, "gpus": 1, "duration": length} for name, at, length in (("a", 0, 50), ("b", 30, 200), ("c", 40, 200))
    ]
    spells = simulate(jobs, "1x1", "gandiva").allocations.select("job", "start", "end").rows()
    assert spells[:4] == [("a", 0.0, 50.0), ("b", 50.0, 60.0), ("c", 60.0, 120.0), ("b", 120.0, 180.0)]


def test_three_jobs_take_turns_on_one_device() -> None:
    jobs = [{"job": name, "arrival": 0, "gpus": 1, "duration": 120} for name in "abc"]
    run = simulate(jobs, "gpu:1x1", "gandiva")
    turns = run.allocations.sort("start").select("job", "start", "end").rows()
    assert turns == [("a", 0, 60), ("b", 60, 120), ("c", 120, 180), ("a", 180, 240), ("b", 240, 300), ("c", 300, 360)]


def test_a_newcomer_waits_for_its_turn_and_nobody_is_preempted_alone() -> None:
    jobs = [{"job": "a", "arrival": 0, "gpus": 1, "duration": 200}, {"job": "b", "arrival": 70, "gpus": 1, "duration": 50}]
    run = simulate(jobs, "gpu:1x1", "gandiva")
    turns = run.allocations.sort("start").select("job", "start", "end").rows()
    assert turns == [("a", 0, 120), ("b", 120, 170), ("a", 170, 250)]


def test_a_slice_of_nothing_is_refused() -> None:
    with pytest.raises(GantlineError, match=r"'slice' is 0\.0"):
        make_policy("gandiva", {"slice": "0"})
