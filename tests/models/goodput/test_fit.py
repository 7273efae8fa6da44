"""The fitted speed model: right slopes, optimistic where nothing was seen, and never worse than SciPy's answer."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from tests.examples import FEWER
from tests.simulator.references import reference

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.models.goodput.fit import fit, fit_like_artifact, loss_and_gradient
from gantline.models.goodput.speed_model import ALPHA_N, ALPHA_R, BETA_N, BETA_R, Observations, SpeedModel, set_priors

TRUTH = SpeedModel(np.array([0.05, 0.004, 0.3, 0.01, 0.1, 0.004, 1.6]))
START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)


def loss_of(p: Floats, rows: Floats) -> tuple[float, Floats]:
    """The loss and its gradient."""
    gradient = np.zeros(7)
    return float(loss_and_gradient(p, rows, gradient, np.zeros((4, 7)))), gradient


def seen(places: list[tuple[int, int, float]], noise: float = 0.0, seed: int = 0, truth: SpeedModel = TRUTH) -> Observations:
    """What a job sees that runs as ``truth`` says, give or take some noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for nodes, replicas, batch in places:
        compute = truth.parameters[0] + truth.parameters[1] * batch
        blur = np.exp(rng.normal(0.0, noise, 2)) if noise else (1.0, 1.0)
        rows.append((nodes, replicas, batch, compute * blur[0], float(truth.step_time(nodes, replicas, batch)) * blur[1]))
    return Observations.of(rows)


MANY = [(n, k, b) for n, k in ((1, 1), (1, 2), (1, 4), (2, 8), (3, 12), (4, 16)) for b in (16.0, 48.0, 128.0)]

times = st.floats(1e-2, 2.0)


@given(st.tuples(times, times, times, times, times, times, st.floats(1.05, 9.0)), st.integers(0, 1000))
@FEWER
def test_slopes_equal_differences(given_parameters: tuple[float, ...], seed: int) -> None:
    p = np.array(given_parameters)
    p[[BETA_N, BETA_R]] *= 0.3 * p[[ALPHA_N, ALPHA_R]]  # steeper growth drowns the differences in its own penalty
    rows = seen(MANY[seed % 7 :], 0.3, seed).rows
    _, slope = loss_of(p, rows)
    for k in range(7):
        change = np.zeros(7)
        change[k] = 1e-4 * p[k]
        difference = (loss_of(p + change, rows)[0] - loss_of(p - change, rows)[0]) / (2.0 * change[k])
        assert slope[k] == pytest.approx(difference, rel=1e-4, abs=1e-5)


def by_scipy(rows: Floats) -> float:
    low, high = np.zeros(7), np.zeros(7)
    set_priors(rows, low, high)
    found = optimize.minimize(loss_of, np.clip(START, low, high), args=(rows,), jac=True, method="L-BFGS-B", bounds=list(zip(low, high)))
    return float(found.fun)


def test_times_without_noise_are_found_again() -> None:
    model = fit(seen(MANY))
    for place in [*MANY, (2, 6, 64.0), (1, 3, 32.0)]:
        assert model.step_time(*place) == pytest.approx(float(TRUTH.step_time(*place)), rel=0.05)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_never_worse_than_scipy_on_the_same_rows(noise: float) -> None:
    rng = np.random.default_rng(5)
    for seed in range(12):
        chosen = [MANY[i] for i in rng.permutation(len(MANY))[: 1 + seed]]
        rows = seen(chosen, noise, seed).rows
        ours = fit(Observations(rows))
        if all(nodes == 1 for nodes, _, _ in chosen):  # the model's last step changes what the loss saw
            continue
        assert loss_of(ours.parameters, rows)[0] <= by_scipy(rows) + 1e-3


def test_never_worse_than_scipy_on_measured_rows() -> None:
    ours, theirs = [], []
    rng = np.random.default_rng(11)
    for app in ("bert", "cifar10", "imagenet", "yolov3"):
        table = measured_rows(reference(f"sia/profiles/{app}/placements-aws.csv"))
        for _ in range(5):
            rows = table[rng.permutation(len(table))[: rng.integers(4, 28)]]
            if (rows[:, 0] > 1).any():
                ours.append(loss_of(fit(Observations(rows)).parameters, rows)[0])
                theirs.append(by_scipy(rows))
    assert max(np.array(ours) - np.array(theirs)) < 1e-3
    assert np.mean(ours) < np.mean(theirs)


def measured_rows(path: Path) -> Floats:
    rows = {}
    for row in csv.DictReader(path.open()):
        place = (len(row["placement"]), sum(map(int, row["placement"])), float(row["local_bsz"]))
        step, sync = float(row["step_time"]), float(row["sync_time"])
        rows.setdefault(place, (*place, step - sync, step))
    return Observations.of(rows.values()).rows


def test_the_artifacts_fit_ends_where_scipy_ends_and_a_loose_tolerance_ends_it_sooner() -> None:
    told = seen(MANY, 0.2, 3)
    strict, loose = (loss_of(fit_like_artifact(told, tolerance).parameters, told.rows)[0] for tolerance in (None, 1e-5))
    assert strict == pytest.approx(by_scipy(told.rows), rel=1e-9)
    assert loose >= strict


def test_one_device_promises_perfect_scaling() -> None:
    model = fit(seen([(1, 1, 32.0), (1, 1, 64.0)]))
    assert model.step_time(1, 4, 64) == pytest.approx(model.step_time(1, 1, 64), rel=1e-3)
    assert model.step_time(4, 16, 64) == pytest.approx(model.step_time(1, 1, 64), rel=1e-3)


def test_across_nodes_is_a_tenth_dearer_until_it_was_tried() -> None:
    p = fit(seen([(1, 1, 32.0), (1, 4, 32.0), (1, 4, 64.0)])).parameters
    assert p[ALPHA_N] == pytest.approx(1.1 * p[ALPHA_R])
    assert p[BETA_N] == pytest.approx(1.1 * p[BETA_R])


def test_with_one_batch_seen_half_of_the_time_is_fixed() -> None:
    rows = seen([(1, 1, 50.0), (1, 2, 50.0)])
    assert fit(rows).parameters[0] == pytest.approx(0.25 / 2)


@pytest.mark.parametrize("row", [(1, 1, 32, 0.0, 0.1), (1, 1, 32, 0.1, float("nan")), (1, 0, 32, 0.1, 0.1)])
def test_impossible_rows_are_named(row: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="row 1 is"):
        Observations.of([(1, 1, 32, 0.1, 0.1), row])
    with pytest.raises(UsageError, match="nothing was observed"):
        Observations.of([])
