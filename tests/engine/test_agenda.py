"""When the policy is asked: at the tick of a regime, and when a speed ends by itself, on both clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gantline.models.model import Gangs, PerformanceModel
from gantline.simulator.simulate import simulate

CLOCKS = ("instant", "acknowledged")


def lives(jobs: list[dict[str, Any]], **options: Any) -> dict[str, tuple[float, float]]:
    """When each job starts and ends, the same on both clocks."""
    runs = [simulate(jobs, "1x1", "fifo", executor=clock, **options) for clock in CLOCKS]
    assert len({run.summary["log_hash"] for run in runs}) == 1
    return {name: (start, end) for name, start, end in runs[0].jobs.select("job", "first_start", "finish").iter_rows()}


@pytest.mark.parametrize(("regime", "first", "second"), [("default", 0.4, 10.9), ("tiresias", 1.0, 12.0)])
def test_a_regime_with_a_tick_decides_on_whole_ticks(regime: str, first: float, second: float) -> None:
    """Of an arrival between two ticks and of an end between two ticks the next tick knows first; an end itself is exact."""
    jobs = [{"job": "a", "arrival": 0.4, "gpus": 1, "duration": 10.5}, {"job": "b", "arrival": 2.0, "gpus": 1, "duration": 5.0}]
    assert lives(jobs, regime=regime) == {"a": (first, first + 10.5), "b": (second, second + 5.0)}


@dataclass(frozen=True)
class Warming(PerformanceModel):
    """A gang does one second's work in ten for a minute, then one in one."""

    def rates(self, gangs: Gangs) -> Any:
        cold = gangs.done < 6.0 - 1e-9
        return np.where(cold, 0.1, 1.0), np.where(cold, gangs.since + (6.0 - gangs.done) / 0.1, np.inf)


def test_the_end_of_a_speed_is_an_appointment() -> None:
    """At the speed of its start 'a' would end at 160; its devices are free at 70, and known to be."""
    jobs = [{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 16.0}, {"job": "b", "arrival": 1.0, "gpus": 1, "duration": 6.0}]
    assert lives(jobs, performance=Warming()) == {"a": (0.0, 70.0), "b": (70.0, 130.0)}
