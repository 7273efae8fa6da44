"""Collaborative filtering of elastic configurations: exact on what it can express, better with more cells, sound on odd tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gantline.core.arrays import Floats
from gantline.systems.heet.policies.variants import ElasticFilter

TYPES, COUNTS = np.array([1.0, 1.5, 2.0, 3.0, 4.0]), np.array([1, 2, 3, 4, 6, 8, 12, 16])


def speeds(seed: int, jobs: int = 60) -> Floats:
    """Jobs that gain more or less from faster devices and scale better or worse, a little noise: what measured tables look like."""
    rng = np.random.default_rng(seed)
    parallel, gain, size = rng.uniform(0.7, 0.99, jobs), rng.uniform(0.5, 1.1, jobs), np.exp(rng.uniform(-2, 2, jobs))
    amdahl = 1.0 / ((1.0 - parallel)[:, None] + parallel[:, None] / COUNTS)
    exact = size[:, None, None] * (TYPES[None, :] ** gain[:, None])[:, :, None] * amdahl[:, None, :]
    return exact * np.exp(rng.normal(0, 0.02, exact.shape))


def filter_error(speed: Floats, measured: np.ndarray, how: ElasticFilter | None = None) -> float:
    """The mean relative error where nothing was measured, for tables of speeds that are known in full."""
    hidden = ~measured & np.isfinite(speed) & (np.nan_to_num(speed) > 0.0)
    if not hidden.any():
        return 0.0
    found = (how or ElasticFilter()).complete(np.where(measured, speed, np.nan))
    return float(np.mean(np.abs(found[hidden] / speed[hidden] - 1.0)))


def some_cells(seed: int, shape: tuple[int, ...], share: float) -> np.ndarray:
    """As many cells of each job as the share says, but at least two."""
    rng = np.random.default_rng(seed)
    measured = np.zeros((shape[0], shape[1] * shape[2]), dtype=bool)
    for row in measured:
        row[rng.permutation(len(row))[: max(2, round(share * len(row)))]] = True
    return measured.reshape(shape)


def test_a_new_job_is_known_from_three_cells_when_others_have_been_seen() -> None:
    truth = speeds(2)
    measured = np.ones(truth.shape, dtype=bool)
    measured[-10:] = False
    measured[-10:, 0, 0] = measured[-10:, 4, 0] = measured[-10:, 0, 4] = True
    assert filter_error(truth, measured) < 0.04


@given(st.integers(0, 1000), st.floats(0.1, 0.9))
@settings(max_examples=settings().max_examples // 3)
def test_known_cells_stay_and_all_others_are_positive_and_finite(seed: int, share: float) -> None:
    truth = speeds(seed, jobs=8)
    measured = some_cells(seed, truth.shape, share)
    found = ElasticFilter(sweeps=4).complete(np.where(measured, truth, np.nan))
    assert (found[measured] == truth[measured]).all()
    assert (found > 0).all()
    assert np.isfinite(found).all()


def test_scale_of_a_job_does_not_matter() -> None:
    truth = speeds(3, jobs=20)
    measured = some_cells(3, truth.shape, 0.4)
    shown = np.where(measured, truth, np.nan)
    factor = np.exp(np.linspace(-3, 3, 20))[:, None, None]
    np.testing.assert_allclose(ElasticFilter().complete(shown * factor), ElasticFilter().complete(shown) * factor, rtol=1e-9)


def test_a_job_of_which_nothing_is_known_scales_like_the_others() -> None:
    truth = speeds(4, jobs=20)
    shown = truth.copy()
    shown[0] = np.nan
    shown[1, 0, 0], shown[2, 0, 0] = 0.0, -1.0
    found = ElasticFilter().complete(shown)
    ratio = found[0, 4, 5] / found[0, 0, 0]
    assert (truth[1:, 4, 5] / truth[1:, 0, 0]).min() < ratio < (truth[1:, 4, 5] / truth[1:, 0, 0]).max()
    assert (found > 0).all()
