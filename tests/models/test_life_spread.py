"""What jobs that ran show of how far one job lies from the mean of its kind."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from gantline.core.errors import RefusedError, UsageError
from gantline.models.profiles.bundle import Bundle
from gantline.models.profiles.colocation_fit import WholeLife, spread_of_lives
from gantline.models.profiles.profiled_model import DrawnTimes

PACES = {"slow": 1.3, "fast": 0.8}  # seconds that a second of the profile really takes


def lives(spread: float, count: int = 120, machine: float = 1.0) -> list[WholeLife]:
    """Jobs whose speeds differ by so much, on a machine that is as much slower than the profile says; starts take two seconds."""
    rng, found = random.Random(3), []
    for place in range(count):
        kind, work = ("slow", "fast")[place % 2], rng.choice((8.0, 12.0, 20.0))
        speed = rng.lognormvariate(0.0, spread)
        found.append(WholeLife(kind, 1 + place % 3 // 2, work, 2.0 + machine * PACES[kind] * work / speed))
    return found


@pytest.mark.parametrize("machine", [1.0, 1.5])
def test_the_spread_of_single_jobs_is_found_whatever_the_profile_and_the_machine_were(machine: float) -> None:
    found = spread_of_lives([lives(0.08, machine=machine)])
    assert np.std(found) == pytest.approx(0.08, rel=0.2)
    assert np.mean(found) == pytest.approx(1.0)
    assert np.std(spread_of_lives([lives(0.0, machine=machine)])) < 1e-6


def test_a_machine_that_changes_from_run_to_run_is_no_spread_of_jobs() -> None:
    assert np.std(spread_of_lives([lives(0.0), lives(0.0, machine=1.4)])) < 1e-6


def test_short_jobs_tell_nothing_because_a_late_start_looks_like_a_slow_job() -> None:
    short = [life._replace(work=1.0, seconds=4.0 + place % 2) for place, life in enumerate(lives(0.0, 40))]
    assert len(spread_of_lives([[*lives(0.0), *short]])) < len([*lives(0.0), *short]) - 30
    with pytest.raises(RefusedError, match="too little"):
        spread_of_lives([lives(0.1, 12)])


def test_draws_of_a_speed_are_picked_from_lives_where_they_are_known() -> None:
    bundle = Bundle(lives=(0.5, 2.0))
    drawn = {DrawnTimes.of(bundle, draw).factor("speed", "slow", 1, f"job{draw}") for draw in range(30)}
    assert drawn == {0.25, 1.0, 4.0}  # the kind and the job are picked apart
    assert Bundle.of(replace(bundle, about="told").to_json()).lives == bundle.lives
    with pytest.raises(UsageError, match="something else than speeds"):
        Bundle.of({**bundle.to_json(), "lives": [0.0]})
