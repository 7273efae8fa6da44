"""What must not matter does not: when the clock began, and what other jobs do on other device types."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.jobs import job_row

from gantline import simulate


def _jobs(seed: int, kind: str, count: int) -> list[dict[str, Any]]:
    draw, arrival, found = random.Random(seed), 0.0, []
    for number in range(count):
        arrival += draw.choice([0.0, 10.0, 240.0])
        gpus, duration = draw.choice([1, 2]), float(draw.choice([300, 700, 1500]))
        found.append(job_row(f"{kind}{number}", gpus, duration, at=arrival, type=kind))
    return found


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("policy", ["shockwave", "las", "tiresias"])
def test_a_clock_that_began_earlier_changes_nothing(policy: str, seed: int) -> None:
    jobs = _jobs(seed, "gpu", 6)
    later = [{**job, "arrival": job["arrival"] + 120.0 * 50_000} for job in jobs]
    first, second = (simulate(rows, "2x2", policy, round=120).jobs["jct"].to_list() for rows in (jobs, later))
    assert second == pytest.approx(first, abs=1e-3)


@pytest.mark.parametrize("seed", [3, 5, 13, 14])
def test_tiresias_own_clock_leaves_devices_of_other_types_alone(seed: int) -> None:
    """A job on the other type runs beside them; the queues must not take its idle devices for theirs."""
    draw, jobs = random.Random(seed), []
    for number in range(draw.randint(3, 5)):
        gpus, duration = draw.choice([1, 2]), float(draw.choice([1000, 4000, 9000]))
        jobs.append(job_row(f"a{number}", gpus, duration, at=10.0 * number, type="v100"))
    other = job_row("other", 1, 20.0, type="k80")
    alone = simulate(jobs, "v100:1x2", "tiresias", regime="tiresias")
    beside = simulate([other, *jobs], "v100:1x2,k80:1x4", "tiresias", regime="tiresias")
    assert beside.jobs["finish"].to_list()[1:] == alone.jobs["finish"].to_list()
