"""Kilowatt-hours, kilograms and money of a run: by hand, shared devices once, and what is said against itself refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.jobs import job_row

from gantline.core.errors import GantlineError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

HOUR = 3600.0


def run(tmp_path: Path, *, series: str = "hour,lca\n0,100\n1,300\n", jobs: list[dict[str, Any]] | None = None, **options: Any) -> Run:
    (tmp_path / "grid.csv").write_text(series)
    (tmp_path / "price.csv").write_text("hour,price\n0,0.1\n1,0.5\n")
    rows = jobs or [job_row("a", 2, 1.5 * HOUR)]
    given = {"carbon": str(tmp_path / "grid.csv"), "electricity": str(tmp_path / "price.csv"), "power": "gpu=400/100"} | options
    return simulate(pl.DataFrame(rows), "1x4", "fifo", **{name: value for name, value in given.items() if value is not None})


def test_busy_and_idle_devices_draw_over_time(tmp_path: Path) -> None:
    told = run(tmp_path).summary

    # 1.5 h: two devices at 400 W, two at 100 W: 1 kW; an hour at 100 g and half an hour at 300 g
    assert told["kwh"] == pytest.approx(1.5)
    assert told["carbon_kg"] == pytest.approx(0.1 + 0.5 * 0.3)
    assert told["energy_cost"] == pytest.approx(0.1 + 0.5 * 0.5)


def test_one_price_for_all_times_and_a_series_that_begins_later(tmp_path: Path) -> None:
    told = run(tmp_path, electricity="0.2", series_start="1").summary

    assert told["energy_cost"] == pytest.approx(1.5 * 0.2)
    assert told["carbon_kg"] == pytest.approx(1.5 * 0.3)
    assert told["carbon_kg_repeats_from"] == HOUR  # the series ends before the run; its last day, here an hour, is repeated


def test_a_device_that_two_jobs_share_draws_once(tmp_path: Path) -> None:
    pair = [job_row(name, 1, HOUR, gpu_demand=0.5) for name in "ab"]
    (tmp_path / "grid.csv").write_text("hour,lca\n0,100\n")

    told = simulate(pl.DataFrame(pair), "1x1", "sharing", carbon=str(tmp_path / "grid.csv"), power="gpu=400").summary

    assert told["kwh"] == pytest.approx(0.4 * told["makespan"] / HOUR)


def test_cpus_count_on_nodes_without_devices(tmp_path: Path) -> None:
    jobs = pl.DataFrame({"job": ["a"], "arrival": [0.0], "gpus": [0], "duration": [HOUR], "cpus": [4.0]})

    told = simulate(jobs, "cpu:1x0/16c", "fifo", power="cpu=10/1").summary

    assert told["kwh"] == pytest.approx((4 * 10 + 12 * 1) / 1000)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"power": "v100=300"}, "no device type 'v100'"),
        ({"power": None}, "nothing that draws any"),
        ({"power": "gpu=100/300"}, "more idle"),
        ({"power": "gpu=hot"}, "is no power"),
        ({"power": "gpu=1,gpu=2"}, "twice"),
        ({"carbon": None, "electricity": None, "series_start": "3"}, "no series to begin in"),
        ({"series_start": "48"}, "no step 48 hours"),
        ({"carbon": "nowhere.csv"}, "no file 'nowhere.csv'"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, options: dict[str, Any], what: str) -> None:
    with pytest.raises(GantlineError, match=what):
        run(tmp_path, **options)
