"""Draws of work: around the estimate, within what is known, never less than what is done."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.models.uncertainty import FEWEST, Uncertainty


def draws(uncertainty, count=4000, **job):
    """So many draws for a job, made as some draws for jobs alike."""
    alike = min(count, 250)
    jobs = [{"id": f"a{k}", "estimate": 100.0, **job} for k in range(alike)]
    present = decode_snapshot({"now": 0, "cluster": "1x4", "jobs": jobs})
    return uncertainty.draw(present, seed=0, first=0, count=-(-count // alike)).ravel()[:count]


def test_around_the_estimate_with_the_width_that_was_stated():
    found = np.log(draws(Uncertainty(sigma=0.3)) / 100.0)
    assert abs(found.mean()) < 0.02
    assert found.std() == pytest.approx(0.3, rel=0.05)


def test_no_width_is_the_estimate_itself():
    assert draws(Uncertainty(sigma=0.0), 5) == pytest.approx([100.0] * 5)


def test_a_range_that_came_with_the_estimate_is_two_deviations_either_way():
    found = draws(Uncertainty(sigma=5.0), metrics={"estimate.low": 50.0, "estimate.high": 200.0})
    inside = ((found > 50) & (found < 200)).mean()
    assert inside == pytest.approx(0.954, abs=0.015)


def test_what_is_done_bounds_it_from_below():
    """The distribution above what is done is the part of the whole one that is left."""
    given = draws(Uncertainty(sigma=0.5), done=120.0, service=120.0)
    whole = draws(Uncertainty(sigma=0.5), 12000)
    left = whole[whole > 120.0]
    assert given.min() >= 120.0
    assert np.quantile(given, [0.25, 0.5, 0.9]) == pytest.approx(np.quantile(left, [0.25, 0.5, 0.9]), rel=0.05)


def test_who_has_outlived_every_guess_needs_as_long_again_on_average():
    found = draws(Uncertainty(sigma=0.0), done=400.0, service=400.0)
    assert found.min() >= 400.0
    assert found.mean() == pytest.approx(800.0, rel=0.05)


def test_the_past_takes_over_when_there_is_enough_of_it():
    shown = tuple([0.5] * FEWEST + [2.0] * FEWEST)
    found = draws(Uncertainty(sigma=0.3, ratios=shown), 400)
    assert np.isin(found, (50.0, 200.0)).mean() > 0.95, "but for the one span of the table in which both meet"
    assert np.quantile(found, [0.3, 0.7]).tolist() == [50.0, 200.0]
    assert set(draws(Uncertainty(sigma=0.3, ratios=shown), 50, done=60.0, service=60.0)) == {200.0}
    assert Uncertainty(ratios=shown).source == "what is known of true work over estimates"
    assert "log-normal" in Uncertainty(ratios=shown[:3]).source


@pytest.mark.parametrize("sigma", [-1.0, float("nan"), float("inf")])
def test_a_width_that_is_none_is_refused(sigma):
    with pytest.raises(UsageError, match="width"):
        Uncertainty(sigma=sigma)


def test_futures_are_drawn_by_their_number_alone() -> None:
    snapshot = decode_snapshot({"now": 0, "cluster": "1x4", "jobs": [{"id": "a", "estimate": 100.0}, {"id": "b", "estimate": 50.0}]})
    many = Uncertainty().draw(snapshot, seed=3, first=0, count=8)
    assert (Uncertainty().draw(snapshot, seed=3, first=5, count=2) == many[5:7]).all()
    assert (Uncertainty().draw(snapshot, seed=4, first=0, count=8) != many).all()
    assert len(set((many / [100.0, 50.0]).ravel().tolist())) == 16, "every job of every future has a draw of its own"
