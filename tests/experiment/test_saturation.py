"""The search for saturation: it brackets the true boundary, says when there is none, and refuses nonsense."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from gantline.core.errors import UsageError
from gantline.experiment.grid import Grid, PolicyChoice
from gantline.experiment.saturation import find_saturation, runner
from gantline.experiment.setting import Setting
from gantline.experiment.source import TraceSource
from gantline.experiment.sweep import run_sweep

BASE = Setting(TraceSource(generator="generic", settings={"jobs": 300, "gpus": 16, "load": 0.5}), "4x4", "fifo")
FIFO = PolicyChoice("fifo")


@dataclass
class Pretended:
    """Runs nothing; loads above `limit` are not steady, one seed of three excepted."""

    limit: float
    asked: int = 0

    def __call__(self, grid: Grid) -> SimpleNamespace:
        self.asked += 1
        load = grid.vary["load"][0]
        steady = [load <= self.limit, load <= self.limit, True]
        frame = pl.DataFrame(
            {"state": ["done"] * 3, "message": [""] * 3, "steady": steady, "queue_mean": [load] * 3, "jct_mean": [1.0] * 3}
        )
        return SimpleNamespace(results=frame)


@pytest.mark.parametrize("limit", [0.31, 0.5, 0.77, 0.999])
def test_the_boundary_is_bracketed(limit: float) -> None:
    pretended = Pretended(limit)
    found = find_saturation(BASE, FIFO, pretended, low=0.2, high=1.2, tolerance=0.02)  # type: ignore[arg-type]
    assert found.sustained <= limit < found.exceeded
    assert found.exceeded - found.sustained <= 0.02 + 1e-9
    assert pretended.asked <= 10
    assert found.tried["load"].is_sorted()
    assert str(found) == f"fifo saturates between a load of {found.sustained:g} and {found.exceeded:g}."


def test_a_range_without_a_boundary_is_said_so() -> None:
    search = {"low": 0.2, "high": 1.2, "tolerance": 0.1}
    below = find_saturation(BASE, FIFO, Pretended(0.1), **search)  # type: ignore[arg-type]
    assert math.isnan(below.sustained)
    assert str(below) == "fifo does not even sustain a load of 0.2."
    above = find_saturation(BASE, FIFO, Pretended(2.0), **search)  # type: ignore[arg-type]
    assert str(above) == "fifo sustains a load of 1.2, the highest tried."


def test_real_runs_saturate_below_full_load(tmp_path: Path) -> None:
    """A gang of 16 needs the whole cluster and FIFO keeps it empty for it, so it cannot use all of it."""
    gangs = BASE.with_value("trace.sizes", "1:0.6,16:0.4").with_value("trace.durations", "lognormal(median=10m, sigma=1)")
    run_all = runner(tmp_path, lambda grid, folder: run_sweep(grid.cases(), folder))
    found = find_saturation(gangs, FIFO, run_all, low=0.1, high=1.3, tolerance=0.3, seeds=(1,))
    assert found.exceeded <= 1.3
    assert found.tried.filter(pl.col("load") == 1.3)["steady"].to_list() == [0.0]
    assert len(list(tmp_path.iterdir())) == found.tried.height


@pytest.mark.parametrize(("search", "message"), [((1.0, 0.5, 0.1), "1 to 0.5 is no range"), ((0.5, 1.0, 0.0), "is never reached")])
def test_nonsense_is_refused(search: tuple[float, float, float], message: str) -> None:
    low, high, tolerance = search
    with pytest.raises(UsageError, match=message):
        find_saturation(BASE, FIFO, Pretended(1.0), low=low, high=high, tolerance=tolerance)  # type: ignore[arg-type]
