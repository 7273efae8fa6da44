"""An hour beside a simulated Slurm whose queue grows: nine of ten starts come by their P90, and half or so by their P50."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.watch.simulated_slurm import Queue

from gantline.lab.questions.forecast import Setup
from gantline.live.watch.held_against import HeldForecasts, hold_against


@pytest.mark.long
def test_nine_of_ten_starts_of_a_growing_hour_come_by_their_p90(tmp_path: Path) -> None:
    """Starts of an hour depend on each other: one job that uses all of its limit delays ten. docs/watch.md has more hours than this one."""
    Queue(load=1.6, load_before=0.8, seed=11, every=1200.0).record(tmp_path)
    held = hold_against(tmp_path, Setup(samples=10))
    assert held.forecasts >= 20
    assert held.by_p90 >= 0.9 * held.forecasts
    assert 0.35 * held.forecasts <= held.by_p50 <= 0.7 * held.forecasts


def test_a_growing_half_hour_is_forecast_as_it_always_was(tmp_path: Path) -> None:
    """What is drawn is the same every time, so that every count is; how often forecasts hold, so few starts cannot say."""
    Queue(load=1.6, load_before=0.8, seed=11, before=1.0, hours=0.5, every=900.0).record(tmp_path)
    assert hold_against(tmp_path, Setup(samples=10)) == HeldForecasts(9, 4, 9, 5, 5, 12, 0, 3)
