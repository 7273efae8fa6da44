"""Regime gaia: GAIA's simulator row by row, by hand on a made-up grid and against recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.grids import hourly
from tests.simulator.references import one_in, reference

from gantline.core.errors import GantlineError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.importers import import_trace

HOUR = 3600.0


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """Thirty days: 100 g/kWh at night, 500 from hour 6 to 18 of each day, the first day cleanest at its hour 20."""
    return hourly(tmp_path, [500 if 6 <= hour % 24 < 18 else 20 if hour == 20 else 100 for hour in range(720)])


def run(grid: str, jobs: list[dict[str, Any]], **settings: Any) -> Run:
    rows = [{"job": str(number), "gpus": 0, "cpus": 1, **job} for number, job in enumerate(jobs)]
    return simulate(pl.DataFrame(rows), None, "gaia", settings={"start": 0, **settings}, regime="gaia", carbon=grid)


def starts(run: Run) -> list[float]:
    return [start / HOUR for start in run.reported["first_start"].to_list()]


NOON = 12 * HOUR
HOUR_LONG = {"arrival": NOON, "duration": HOUR}


@pytest.mark.parametrize(
    ("settings", "start"),
    [
        ({"carbon": "oracle", "waiting": "0x0"}, 12.0),  # nothing may wait
        ({"carbon": "lowest", "waiting": "6x24"}, 18.0),  # the first hour of 100; hour 20 is out of reach
        ({"carbon": "lowest", "waiting": "12x24"}, 20.0),
        ({"carbon": "oracle", "waiting": "12x24"}, 20.0),
        ({"carbon": "cst_oracle", "waiting": "12x24"}, 18.0),  # 400 saved in 7 hours is more per hour than 480 in 9
        ({"carbon": "cst_average", "waiting": "12x24"}, 18.0),
        ({"scheduling": "cost", "waiting": "6x24"}, 18.0),  # as late as it may be, the grid is not looked at
    ],
)
def test_a_job_starts_when_the_policy_says(grid: str, settings: dict[str, Any], start: float) -> None:
    found = run(grid, [HOUR_LONG], **settings)

    assert starts(found) == [start]
    assert found.summary["mean_wait_h"] == pytest.approx(start - 12.0)
    level = {12.0: 0.5, 18.0: 0.1, 20.0: 0.02}[start]
    assert found.summary["carbon"] == pytest.approx(level)
    assert found.summary["cost"] == pytest.approx(0.0624)


def test_a_job_that_may_be_suspended_runs_in_the_cleanest_ticks_in_pieces(grid: str) -> None:
    found = run(grid, [{"arrival": NOON, "duration": 4 * HOUR}], scheduling="suspend-resume", carbon="oracle", waiting="6x5")

    # of the nine hours from noon on 18, 19 and 20 are clean, the fourth one is the first of the others
    assert [(start / HOUR, length / HOUR) for start, length in found.reported.select("first_start", "length").rows()] == [(12, 1), (18, 3)]
    assert found.jobs["finish"].to_list() == [21 * HOUR]
    assert found.summary["mean_wait_h"] == pytest.approx((0 + 6) / 2)  # pieces count as jobs


def test_a_threshold_lets_a_job_run_below_it_and_when_its_patience_is_used_up(grid: str) -> None:
    # the 30 % quantile of the day from noon on is 100, which is not strictly below itself: only hour 20 runs
    found = run(grid, [{"arrival": NOON, "duration": 3 * HOUR}], scheduling="suspend-resume-threshold", waiting="6x10")

    assert [(start / HOUR, length / HOUR) for start, length in found.reported.select("first_start", "length").rows()] == [(20, 1), (23, 2)]


def test_reserved_machines_start_jobs_early_and_are_free_one_tick_after_an_end(grid: str) -> None:
    two = [HOUR_LONG, {"arrival": NOON + 10, "duration": HOUR}]
    found = run(grid, two, scheduling="carbon-cost", carbon="lowest", waiting="6x24", reserved=1)

    assert found.reported["bought"].to_list() == ["reserved", "reserved"]
    assert found.reported["first_start"].to_list() == [NOON, NOON + HOUR + 5]
    assert found.summary["cost"] == pytest.approx(0.4 * 0.0624 * (13 + 5 / HOUR))  # the fee runs to the last start


def test_short_jobs_take_spot_machines(grid: str) -> None:
    found = run(grid, [HOUR_LONG, {"arrival": NOON, "duration": 3 * HOUR}], scheduling="carbon-spot", waiting="0x0")

    assert found.reported["bought"].to_list() == ["spot", "on-demand"]
    assert found.summary["cost"] == pytest.approx(0.01248 + 3 * 0.0624)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"settings": {"start": 1}}, "from hour 1 on reads 720"),
        ({"settings": {"waiting": "six"}}, "waiting is 'six'"),
        ({"carbon": ""}, "carbon"),
        ({"cluster": "cpu:1x0/0.5c"}, "0.5"),
        ({"jobs": {"duration": [200.0]}}, "less than 300 s"),
        ({"jobs": {"cpus": [0.5]}}, "whole number of CPUs"),
    ],
)
def test_what_the_original_has_nothing_like_is_refused(grid: str, change: dict[str, Any], what: str) -> None:
    jobs = pl.DataFrame({"job": ["0"], "arrival": [0.0], "gpus": [0], "duration": [HOUR], "cpus": [1.0]} | change.pop("jobs", {}))
    options = {"regime": "gaia", "carbon": grid, "settings": {"start": 0} if "policy" not in change else None} | change

    with pytest.raises(GantlineError, match=what):
        simulate(jobs, options.pop("cluster", None), options.pop("policy", "gaia"), **options)


@pytest.mark.parametrize(("apart", "rows_at_least"), one_in(2, [(4, 2_000), (1, 10_910)]))
def test_every_recorded_row_is_equal(apart: int, rows_at_least: int) -> None:
    jobs = import_trace("gaia", reference("carbon/jobs_pai_1k.csv"))
    recorded = pl.read_csv(reference("carbon/gaia_per_job.csv.gz")).filter(pl.col("job") >= 0)
    carbon = str(reference("carbon/ci_AU-VIC_2022.csv.gz"))
    compared = 0

    for flags in pl.read_csv(reference("carbon/gaia_summary.csv")).gather_every(apart).iter_rows(named=True):
        settings = {
            "scheduling": flags["scheduling_policy"], "carbon": flags["carbon_policy"], "reserved": flags["reserved"],
            "waiting": flags["waiting"], "start": flags["start_index"],
        }  # fmt: skip
        found = simulate(jobs, None, "gaia", settings=settings, regime="gaia", carbon=carbon)
        rows = recorded.filter(pl.col("setting") == flags["setting"])
        ours = found.reported.select(
            pl.col("job").cast(pl.Int64), (pl.col("first_start") / 5).cast(pl.Int64), (pl.col("wait") / 5).cast(pl.Int64),
            (pl.col("finish") / 5).cast(pl.Int64),
        )  # fmt: skip
        assert ours.rows() == rows.select("job", "start_tick", "wait_ticks", "end_tick").rows(), flags["setting"]
        for name in ("carbon", "cost"):
            assert found.reported[name].to_list() == pytest.approx(rows[name].to_list(), abs=1e-7)
            assert found.summary[name] == pytest.approx(flags[name], abs=2e-6)
        assert found.summary["mean_wait_h"] == pytest.approx(flags["mean_wait_h"], abs=1e-6)
        compared += len(rows)

    assert compared >= rows_at_least
