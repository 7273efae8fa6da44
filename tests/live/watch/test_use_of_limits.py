"""How much of their limits jobs use: those that still run count, too, as jobs that use more than they have so far."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.live.watch.slurm_snapshot import shares_of_limits

EVENLY = [(k + 0.5) / 200 for k in range(200)]


def test_where_all_have_ended_their_shares_are_the_answer_and_a_few_more_up_to_the_limit() -> None:
    found = shares_of_limits([0.2] * 180, [])
    assert found.count(0.2) == 181
    assert (len(found), max(found)) == (200, 1.0)


def test_where_accounting_is_young_the_long_jobs_still_run_and_are_not_forgotten() -> None:
    """All of them began together, and a third of their limits has passed."""
    ended, running = [share for share in EVENLY if share < 0.34], [0.34 for share in EVENLY if share >= 0.34]
    found = np.array(shares_of_limits(ended, running))
    assert np.quantile(ended, 0.9) < 0.34
    for place in (0.1, 0.5, 0.9):
        assert np.quantile(found, place) == pytest.approx(place, abs=0.02)


def test_jobs_that_began_at_any_time_count_as_far_as_they_have_come() -> None:
    random = np.random.default_rng(0)
    share, age = random.beta(2.0, 3.0, 4000), random.uniform(0.0, 1.2, 4000)
    found = shares_of_limits(share[share <= age].tolist(), age[share > age].tolist())
    assert np.quantile(found, [0.25, 0.5, 0.9]) == pytest.approx(np.quantile(share, [0.25, 0.5, 0.9]), abs=0.04)


def test_where_nothing_has_ended_any_share_up_to_the_limit_is_as_likely() -> None:
    assert np.mean(shares_of_limits([], [])) == pytest.approx(0.525)
    assert shares_of_limits([], [1.5]) != shares_of_limits([], [])
    assert 0.0 < min(shares_of_limits([], [0.0, 1.5])) <= max(shares_of_limits([], [0.0, 1.5])) <= 1.0
