"""Hours beside a simulated Slurm: nine of ten starts come by their P90, and the P50 is no idle word either."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.watch.simulated_slurm import Queue

from gantline.questions.forecast import Setup
from gantline.watch.held_against import hold_against

HOURS = {
    "growing": {"load": 1.6, "load_before": 0.8},
    "steady": {"load": 0.9, "load_before": 0.9},
    "draining": {"load": 0.2, "load_before": 1.1},
    "young": {"load": 1.3, "load_before": 1.3, "before": 0.5},  # accounting began half an hour ago
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", HOURS)
def test_nine_of_ten_starts_of_an_hour_come_by_their_p90(kind: str, tmp_path: Path, long: bool) -> None:
    """Starts of one hour depend on each other: one job that takes all of its limit delays ten. So several hours count together."""
    starts = by_p50 = by_p90 = 0
    for seed in (11, 12, 13) if long else (11,):
        Queue(seed=seed, every=600.0 if long else 1200.0, **HOURS[kind]).record(tmp_path / str(seed))
        held = hold_against(tmp_path / str(seed), Setup(samples=20 if long else 10))
        starts, by_p50, by_p90 = starts + held.forecasts, by_p50 + held.by_p50, by_p90 + held.by_p90
    assert starts >= 20
    assert by_p90 >= 0.9 * starts
    assert by_p50 >= 0.35 * starts
    if kind != "young":  # where little is known of run times forecasts are late ones
        assert by_p50 <= 0.7 * starts
