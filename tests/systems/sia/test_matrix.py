"""Rows in GPU equivalents, the discount for restarts and what the artifact charges for them, and powers."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.systems.sia.imitation.jobs import charges_of
from gantline.systems.sia.policies.policy import Sia
from gantline.systems.sia.policies.program import costs, normalised, restart_factor

NAN = float("nan")


def test_a_row_is_counted_in_gpus_of_its_least_configuration() -> None:
    goodput = np.array([[0.0, 5.0, 10.0], [3.0, 2.0, NAN]])
    unit = np.array([[2.0, 8.0, 8.0], [1.0, 1.0, 1.0]])
    found = normalised(goodput, unit)
    np.testing.assert_allclose(found, [[NAN, 8.0, 16.0], [1.5, 1.0, NAN]])


def test_a_row_without_any_goodput_offers_nothing() -> None:
    worth = normalised(np.zeros((1, 2)), np.ones((1, 2)))
    assert np.isinf(costs(worth, np.ones(1), np.array([-1]), np.ones(1), -0.5)).all()


def test_the_restart_factor_is_the_share_of_its_age_that_a_job_has_run() -> None:
    found = restart_factor(np.array([20.0, 300.0, 100.0]), np.array([5, 2, 4]), np.array([30.0, 30.0, 30.0]))
    np.testing.assert_allclose(found, [1.0, 240.0 / 330.0, 0.0])


def test_only_jobs_that_hold_something_are_discounted_and_not_in_what_they_hold() -> None:
    worth = np.array([[1.0, 4.0], [1.0, 4.0]])
    found = costs(worth, np.array([0.25, 0.25]), np.array([1, -1]), np.ones(2), -0.5)
    np.testing.assert_allclose(found, [[2.0, 0.5], [1.0, 0.5]])


def test_costs_are_rounded_weighted_and_bounded() -> None:
    found = costs(np.array([[3.0, 7.0]]), np.zeros(1), np.array([0]), np.array([2.0]), -0.5)
    np.testing.assert_allclose(found, [[2 * 0.58, 2 * 3000.0]])


@pytest.mark.parametrize(("p", "wanted"), [(1.0, [-1.0, -4.0]), (0.0, [0.0, -1.39]), (-1.0, [1.0, 0.25])])
def test_more_goodput_costs_less_for_every_power(p: float, wanted: list[float]) -> None:
    found = costs(np.array([[1.0, 4.0]]), np.ones(1), np.array([-1]), np.ones(1), p)
    np.testing.assert_allclose(found[0], wanted)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lambda_n": 0.9}, "above 1"),
        ({"restart": -1.0}, "parameter 'restart'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sia(**settings)  # type: ignore[arg-type]


# Numbers of Sia's artifact that runs of our own do not reach, because these know none of its applications.


@pytest.mark.parametrize(
    ("application", "restart", "assumed", "slowdown"),
    [
        ("cifar10", 50, 30, 1.8),
        ("deepspeech2", 25, 25, 1.2),
        ("bert", 120, 120, 1.2),
        ("yolov3", 80, 45, 1.2),
        ("imagenet", 250, 250, 1.2),
        ("ncf", 15, 30, 1.5),
        ("one of our own", 30, 7, 1.0),
    ],
)
def test_a_restart_costs_what_the_artifact_charges(application: str, restart: float, assumed: float, slowdown: float) -> None:
    """A change here changes every comparison with the artifact; `make records` makes them where its results are at hand."""
    found = charges_of(application, 7.0)
    assert (found.restart, found.assumed, found.slowdown) == (restart, assumed, slowdown)
