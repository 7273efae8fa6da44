"""Numbers of Sia's artifact that runs of our own do not reach, because these know none of its applications."""

from __future__ import annotations

import pytest

from gantline.systems.sia.imitation.jobs import charges_of


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
