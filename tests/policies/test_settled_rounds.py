"""Rounds in which nothing can change are skipped by policies that divide and resize, with the same result as stepping through each."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gantline import simulate


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
