"""CarbonScaler on the default engine: elastic jobs are done by their deadlines, and emit less than at a fixed size."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.grids import hourly

from gantline.core.errors import GantlineError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

HOUR = 3600.0


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Clean hours 0 to 5 and 18 to 23, and one very clean hour at noon."""
    return hourly(tmp_path_factory.mktemp("grid"), [50 if hour == 12 else 500 if 6 <= hour < 18 else 100 for hour in range(24)])


def job(name: str, arrival: float, hours: float, deadline: float, most: int = 4) -> dict[str, Any]:
    """A job of so many hours on one GPU, which loses a tenth of its speed with every further one."""
    sizes = "|".join(f"gpu:{n}={hours * HOUR / (n - 0.1 * (n - 1))}" for n in range(1, most + 1))
    return {
        "job": name, "arrival": arrival * HOUR, "gpus": 1, "duration": hours * HOUR, "min_gpus": 1, "max_gpus": most,
        "deadline": deadline * HOUR, "options": sizes,
    }  # fmt: skip


def run(grid: str, *jobs: dict[str, Any], policy: str = "carbonscaler", cluster: str = "1x8", **options: Any) -> Run:
    return simulate(pl.DataFrame(list(jobs)), cluster, policy, carbon=grid, power="gpu=1000/0", **options)


def test_a_job_grows_in_the_clean_hour_and_rests_before_it(grid: str) -> None:
    found = run(grid, job("a", 8, 3, 18))

    spells = [(start / HOUR, end / HOUR, gpus) for start, end, gpus in found.allocations.select("start", "end", "gpus").rows()]
    assert spells == [(12.0, pytest.approx(12.0 + 3 / 3.7), 4)]
    fixed = run(grid, job("a", 8, 3, 18), policy="fifo")
    assert found.summary["carbon_kg"] < 0.25 * fixed.summary["carbon_kg"]


def test_a_tight_deadline_leaves_no_choice(grid: str) -> None:
    found = run(grid, job("a", 8, 3.7, 9))

    assert found.jobs["finish"][0] <= 9 * HOUR + 1e-6
    assert found.allocations["gpus"].to_list() == [4]


def test_a_deadline_that_cannot_be_met_is_said_and_the_job_runs_as_wide_as_it_may(grid: str) -> None:
    found = run(grid, job("a", 8, 10, 9))

    assert any("cannot meet its deadline" in note for note in found.notices)
    assert found.summary["completed"] == 1
    assert set(found.allocations["gpus"].to_list()) == {4}


def test_a_later_job_plans_with_what_the_earlier_one_leaves(grid: str) -> None:
    found = run(grid, job("a", 8, 3.7, 14), job("b", 8.5, 3.7, 20), cluster="1x4")

    assert (found.jobs["finish"] <= pl.Series([14 * HOUR, 20 * HOUR]) + 1e-6).all()
    noon = found.allocations.filter(pl.col("start") == 12 * HOUR)
    assert noon["job"].to_list() == ["a"]  # it has all four GPUs in the cleanest hour


@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), cost=st.sampled_from(["", "60"]))
def test_no_job_whose_deadline_was_planned_for_is_late(grid: str, seed: int, cost: str) -> None:
    draw = np.random.default_rng(seed)
    arrivals = np.sort(draw.uniform(0, 20, 6))
    jobs = [job(str(k), at, draw.uniform(0.3, 5), at + draw.uniform(1, 18), int(draw.integers(1, 5))) for k, at in enumerate(arrivals)]

    found = run(grid, *jobs, costs=cost)

    given_up = {note.split("'")[1] for note in found.notices}
    late = found.jobs.filter(pl.col("finish") > pl.col("deadline") + 1e-3)["job"].to_list()
    assert set(late) <= given_up
    assert found.summary["completed"] == 6


def test_a_slack_below_zero_and_a_run_without_a_series_are_refused() -> None:
    jobs = pl.DataFrame([job("a", 0, 1, 5)])
    with pytest.raises(GantlineError, match="slack"):
        simulate(jobs, "1x4", "carbonscaler", settings={"slack": -1})
    with pytest.raises(GantlineError, match=r"needs carbon.*--carbon FILE"):
        simulate(jobs, "1x4", "carbonscaler")
