"""Optimus' two fits: losses to epochs, samples to speeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from gantline.core.errors import UsageError
from gantline.models.convergence import LossCurve, epochs_left, fit_losses, smoothed, two_unknowns
from gantline.models.parameter_servers import PROFILED, ServerJob, ServerSpeed, fit_speed

part = st.floats(0.0, 3.0)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=2, max_size=7))
def test_two_unknowns_are_non_negative_least_squares(points: list[tuple[float, float]]) -> None:
    y, weight = np.array(points).T
    x = np.arange(1.0, len(y) + 1)
    slope, start = (float(found[0]) for found in two_unknowns(x, y[None, :], weight))
    root = np.sqrt(weight)
    (a, b), error = nnls(np.stack([x, np.ones(len(x))], axis=1) * root[:, None], y * root)
    assert float(np.linalg.norm((slope * x + start - y) * root)) == pytest.approx(error, abs=1e-7)
    assert (slope, start) == (pytest.approx(a, abs=1e-6), pytest.approx(b, abs=1e-6))


@given(st.floats(0.01, 3.0), st.floats(0.2, 3.0), st.floats(1e-5, 0.05))
def test_converged_is_where_one_more_epoch_gains_no_more_than_the_drop(slope: float, start: float, drop: float) -> None:
    curve = LossCurve(slope, start, 0.1)
    epoch = curve.converged(drop)
    assert curve.loss(epoch) - curve.loss(epoch + 1) <= drop * (1 + 1e-6)
    if epoch > 0.0:
        assert curve.loss(epoch) - curve.loss(epoch + 1) == pytest.approx(drop)


def test_epochs_to_go_are_found_from_the_first_losses() -> None:
    truth = ServerJob.parse("sync=1/1/1/0/0;epochs=50;loss=0.3/1/0.2")
    seen = [[float(k), truth.loss.loss(k)] for k in range(1, 13)]
    fitted = fit_losses(seen)
    assert fitted is not None
    assert fitted.loss(30.0) == pytest.approx(truth.loss.loss(30.0), rel=0.01)
    assert epochs_left(seen, truth.drop, 12.0) == pytest.approx(38.0, rel=0.1)
    assert epochs_left(seen[:2], truth.drop, 2.0) == 20.0  # too few to say
    assert epochs_left([[float(k), 1.0] for k in range(1, 9)], 0.01, 8.0) == 20.0  # a loss that does not fall


def test_an_outlier_is_the_mean_of_its_neighbours() -> None:
    losses = np.array([5.0, 4.0, 9.0, 3.0, 2.5, 2.2])
    assert smoothed(losses).tolist() == [5.0, 4.0, 3.5, 3.0, 2.5, 2.2]


@given(st.sampled_from(["sync", "async"]), st.lists(part, min_size=5, max_size=5), st.floats(1.0, 40.0))
def test_exact_samples_give_the_speed_back(mode: str, terms: list[float], batch: float) -> None:
    kept = tuple(terms[: 5 if mode == "sync" else 4])
    if sum(kept) < 0.1:
        return
    truth = ServerSpeed(mode, kept, batch)
    more = ((8, 8), (3, 7))
    fitted = fit_speed(mode, batch, [(p, w, truth.speed(p, w)) for p, w in (*PROFILED, *more)])
    for p, w in (*PROFILED, (6, 5), (2, 8)):
        assert fitted.speed(p, w) == pytest.approx(truth.speed(p, w), rel=1e-3)


def test_the_example_of_the_paper() -> None:
    """ResNet-50, synchronous: more workers for the same servers help until servers are the bottleneck."""
    speed = ServerSpeed("sync", (1.02, 2.78, 4.92, 0.0, 0.02), 20.0)
    assert speed.speed(1, 1) == pytest.approx(1 / (20.4 + 2.78 + 4.92 + 0.02))
    assert speed.speed(1, 8) < speed.speed(1, 2) < speed.speed(4, 8)
    assert speed.speed(0, 3) == 0.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sync=1/2", "says no speed"),
        ("async=1/x/2/3", "no list of numbers"),
        ("sync=1/1/1/0/-1", "says no speed"),
        ("sync=1/1/1/0/0;epochs=0", "no training"),
        ("sync=1/1/1/0/0;loss=1", "loss has 1"),
        ("sync=1/1/1/0/0;lots=1", "there is no 'lots=1'"),
    ],
)
def test_what_cannot_be_meant(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ServerJob.parse(text)


def test_a_job_is_written_and_read() -> None:
    truth = ServerJob.parse("async=2.83/3.92/0/0.11;batch=20;epochs=40;loss=0.5/1/0.1")
    assert ServerJob.parse(str(truth)) == truth
