"""Heet-like: what is known of a job, what is completed of it, what ways cost, who gets free devices, who trades."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER

from gantline import simulate
from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy
from gantline.systems.heet.policies.policy import Prices, match, price_all, trade
from gantline.systems.heet.policies.variants import ElasticFilter, HeetVariants, Variant, read_variants

SPEED = {"slow": 1.0, "mid": 2.0, "fast": 4.0}
CLUSTER = "slow:1x8,mid:1x8,fast:1x8"


def ways_of(speed: dict[int, dict[Variant, float]], held: dict[int, Variant] | None = None, free: list[int] | None = None) -> HeetVariants:
    return HeetVariants(speed, held or {}, dict.fromkeys(speed, 1000.0), free or [8, 8], {})


def test_three_cells_of_a_new_job_are_measured_and_the_way_it_runs_in() -> None:
    options = [{"type": kind, "gpus": g, "rate": SPEED[kind] * g} for kind in SPEED for g in (1, 2, 4)]
    job = {"id": "a", "gpus": 1, "max_gpus": 4, "estimate": 100.0, "options": options}
    snapshot = decode_snapshot({"cluster": CLUSTER, "now": 0.0, "jobs": [job, job | {"id": "b"}]})
    _, remembered = read_variants(snapshot, {}, "three")
    assert [len(cells) for cells in remembered["seen"].values()] == [3, 3]
    assert set(remembered["seen"]["0"]) == {"0/1", "0/2", "1/1"}
    assert set(remembered["seen"]["1"]) == {"1/1", "1/4", "2/1"}
    running = decode_snapshot(
        {"cluster": CLUSTER, "now": 60.0, "jobs": [job | {"devices": list(range(16, 20)), "option": 8}, job | {"id": "b"}]}
    )
    ways, later = read_variants(running, remembered | {"believed": {"0": {"2/4": 12.0}}}, "three")
    assert ways.held == {0: (2, 4)}
    assert later["seen"]["0"]["2/4"] == ways.speed[0][2, 4] == 16.0
    assert later["errors"] == [1, pytest.approx(0.25)]  # the belief was put to the test


def test_a_price_is_time_over_efficiency_and_grows_with_what_others_wait_for() -> None:
    speed = {0: {(0, 1): 1.0, (0, 4): 2.0}}
    alone = price_all(ways_of(speed, held={0: (0, 1)}, free=[7]), [8], kappa=1.0, power=1.0)
    assert alone.table[0] == pytest.approx({(0, 1): 1000.0, (0, 4): 1000.0 / 2 / 0.5})
    crowd = price_all(ways_of(speed | {1: {(0, 4): 1.0}}, held={0: (0, 1)}, free=[7]), [8], kappa=1.0, power=1.0)
    assert crowd.table[0][0, 4] == pytest.approx(1000.0 * (1 + 0.5 * 0.5))
    plain = price_all(ways_of(speed | {1: {(0, 4): 1.0}}, held={0: (0, 1)}, free=[7]), [8], kappa=0.0, power=0.0)
    assert plain.table[0][0, 4] == pytest.approx(500.0)


def test_of_those_who_wait_the_cheapest_start_and_as_many_as_can() -> None:
    speed: dict[int, dict[Variant, float]] = {k: {(0, 2): 1.0} for k in range(3)}
    ways = HeetVariants(speed, {}, {0: 3000.0, 1: 10.0, 2: 500.0}, [4], {})
    grants: dict[int, Variant] = {}
    match(price_all(ways, [4], 1.0, 1.0), grants, [4], set())
    assert grants == {1: (0, 2), 2: (0, 2)}


def test_a_job_grows_only_if_its_price_falls() -> None:
    ways = ways_of({0: {(0, 1): 1.0, (0, 2): 1.9, (0, 4): 2.0}}, held={0: (0, 1)}, free=[8])
    grants, free = dict(ways.held), [7]
    match(price_all(ways, [8], 1.0, 1.0), grants, free, set())
    assert grants == {0: (0, 2)}
    assert free == [6]
    still = dict(ways.held)
    match(price_all(ways, [8], 1.0, 1.0), still, [7], fixed={0})
    assert still == ways.held


def test_a_job_larger_than_eight_finds_a_slot() -> None:
    ways = ways_of({0: {(0, 12): 1.0}}, free=[16])
    grants: dict[int, Variant] = {}
    match(price_all(ways, [16], 1.0, 1.0), grants, [16], set())
    assert grants == {0: (0, 12)}


def test_two_exchange_types_if_both_together_gain_more_than_restarts_cost() -> None:
    prices = Prices({0: {(0, 1): 1000.0, (1, 1): 250.0}, 1: {(0, 1): 1000.0, (1, 1): 900.0}}, {0: 2000.0, 1: 2000.0})
    grants: dict[int, Variant] = {0: (0, 1), 1: (1, 1)}
    assert trade(prices, grants, [0, 0], set(), restart=30.0, most=8) == 1
    assert grants == {0: (1, 1), 1: (0, 1)}
    grants = {0: (0, 1), 1: (1, 1)}
    assert trade(prices, grants, [0, 0], set(), restart=400.0, most=8) == 0
    assert trade(prices, grants, [0, 0], {0}, restart=30.0, most=8) == 0


def test_a_wide_job_hands_devices_to_one_that_waits() -> None:
    speed = {0: {(0, 2): 1.0, (0, 4): 1.1}, 1: {(0, 2): 1.0}}
    ways = ways_of(speed, held={0: (0, 4)}, free=[0])
    prices = price_all(ways, [4], 0.0, 0.0)
    grants, free = dict(ways.held), [0]
    assert trade(prices, grants, free, set(), restart=30.0, most=8) == 1
    assert grants == {0: (0, 2), 1: (0, 2)}
    assert free == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"power": -1.0}, "power"), ({"residence": 0.0}, "residence")],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_policy("heet-like", settings)


@pytest.mark.parametrize("gpus", [3, 5, 6, 7, 11])
def test_a_job_of_an_odd_size_runs_when_it_is_alone(gpus: int) -> None:
    run = simulate([{"job": "odd", "arrival": 0.0, "gpus": gpus, "duration": 100.0}], f"1x{gpus}", "heet-like")
    assert run.jobs["finish"].to_list() == [100.0]


# Collaborative filtering of elastic configurations: exact on what it can express, better with more cells, sound on odd tables.

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
@FEWER
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
