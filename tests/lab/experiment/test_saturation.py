"""The search for saturation: it finds the true boundary with an interval over seeds, says when there is none, and refuses nonsense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import polars as pl
import pytest

from gantline.core.errors import UsageError
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.saturation import Saturation, find_saturation
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource

BASE = Setting(TraceSource(generator="generic", settings={"jobs": 300, "gpus": 16, "load": 0.5}), "4x4", "fifo")
FIFO = PolicyChoice("fifo")


@dataclass
class Pretended:
    """Runs nothing; loads above the limit of a seed are not steady."""

    limits: tuple[float, ...]
    asked: int = 0

    def __call__(self, cases: Sequence[Case]) -> SimpleNamespace:
        self.asked += 1
        steady = [case.axes["load"] <= self.limits[case.axes["seed"]] for case in cases]
        frame = {"state": "done", "message": "", "steady": steady, "queue_mean": 2.0, "jct_mean": 1.0}
        return SimpleNamespace(results=pl.DataFrame(frame))


def search(*limits: float, tolerance: float = 0.02) -> Saturation:
    pretended = Pretended(limits)
    return find_saturation(BASE, FIFO, pretended, low=0.2, high=1.2, tolerance=tolerance, seeds=range(len(limits)))  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0.31, 0.5, 0.77, 0.999])
def test_one_seed_gives_a_boundary_without_an_interval(limit: float) -> None:
    found = search(limit)
    assert found.load.value == pytest.approx(limit, abs=0.011)
    assert not found.load.known
    assert found.tried["load"].is_sorted()
    assert "to within 0.01 (1 seed); an interval needs 3 seeds at least" in str(found)


@pytest.mark.parametrize("limit", [0.31, 0.39, 0.52, 0.68, 0.97])
def test_the_interval_holds_all_of_what_bisection_leaves_open(limit: float) -> None:
    """Seeds that agree know the boundary up to the width of their bracket, on either side."""
    found = search(limit, limit, limit, tolerance=0.2).load
    assert found.low <= limit <= found.high
    assert found.high - found.value == pytest.approx(found.value - found.low)
    assert 0.1 < found.high - found.low <= 0.2 + 1e-9


def test_a_range_without_a_boundary_is_said_so() -> None:
    assert str(search(0.1, 0.1)) == "fifo does not even sustain a load of 0.2 (2 seeds)."
    assert str(search(2.0)) == "fifo sustains a load of 1.2, the highest tried (1 seed)."
    assert "1 of them sustain even 1.2, so that the range is too narrow" in str(search(0.8, 0.9, 2.0))


@pytest.mark.parametrize(("search", "message"), [((1.0, 0.5, 0.1), "1 to 0.5 is no range"), ((0.5, 1.0, 0.0), "is never reached")])
def test_nonsense_is_refused(search: tuple[float, float, float], message: str) -> None:
    low, high, tolerance = search
    with pytest.raises(UsageError, match=message):
        find_saturation(BASE, FIFO, Pretended((1.0,) * 5), low=low, high=high, tolerance=tolerance)  # type: ignore[arg-type]
