"""What the imitation has nothing like is refused, and traces that it did not make run in it too."""

from __future__ import annotations

from typing import Any

import pytest

from gantline import simulate
from gantline.core.errors import GantlineError

JOBS = [
    {"job": "a", "arrival": 0, "gpus": 1, "duration": 1000, "max_gpus": 4, "deadline": 900, "options": "gpu:1=1000|gpu:2=600|gpu:4=400"},
    {"job": "b", "arrival": 10, "gpus": 2, "duration": 600, "max_gpus": 4, "deadline": 300, "options": "gpu:2=600|gpu:4=400"},
    {"job": "c", "arrival": 10, "gpus": 1, "duration": 50, "max_gpus": 1, "deadline": None, "options": "gpu:1=50"},
]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"round": None}, "length of a slot"),
        ({"cluster": "gpu:1x4,other:1x4"}, "one device type"),
    ],
)
def test_a_request_that_the_original_cannot_answer_is_refused(changed: dict[str, Any], told: str) -> None:
    given = {"cluster": "gpu:1x4", "policy": "elasticflow", "round": 60.0} | changed
    with pytest.raises(GantlineError, match=told):
        simulate(JOBS, given.pop("cluster"), given.pop("policy"), regime="elasticflow", **given)


def test_a_job_without_a_power_of_two_is_refused() -> None:
    jobs = [{"job": "odd", "arrival": 0, "gpus": 3, "duration": 10, "deadline": 100}]
    with pytest.raises(GantlineError, match="'odd' has no size that is a power of two"):
        simulate(jobs, "gpu:1x4", "elasticflow", regime="elasticflow", round=60)


def test_a_slot_that_overhead_eats_up_is_refused_instead_of_running_for_ever() -> None:
    """The planned end of the job that waits is a round, in which the other is started again; the original goes on without end."""
    runs = {"job": "a", "arrival": 0, "gpus": 4, "duration": 6, "deadline": 6, "options": "gpu:4=6"}
    waits = {"job": "b", "arrival": 0, "gpus": 1, "duration": 1, "deadline": None, "options": "gpu:1=1"}
    with pytest.raises(GantlineError, match="a slot has only 1"):
        simulate([runs, waits], "gpu:1x4", "elasticflow", regime="elasticflow", round=1, settings={"compat": "elasticflow"})


def test_tiresias_with_a_restart_in_every_round_is_refused_too() -> None:
    """A second's slot means that all start again in every round, and one is made for each demotion that seems near."""
    jobs = [{"job": "a", "arrival": 0, "gpus": 8, "duration": 9000}]
    with pytest.raises(GantlineError, match="a slot has only 1"):
        simulate(jobs, "gpu:1x8", "tiresias", regime="elasticflow", round=1, settings={"limits": "100,200"})


def test_a_job_may_grow_over_more_levels_than_the_original_has() -> None:
    options = "|".join(f"gpu:{2**level}={100_000 / 2**level}" for level in range(11))
    jobs = [{"job": "wide", "arrival": 0, "gpus": 1, "duration": 100_000, "max_gpus": 1024, "options": options}]
    run = simulate(jobs, "gpu:128x8", "elasticflow", regime="elasticflow", round=60, settings={"compat": "elasticflow"})
    assert run.allocations["gpus"].to_list() == [1024]
