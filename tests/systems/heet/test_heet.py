"""Heet-like: what is known of a job, what ways cost, who gets free devices, who trades."""

from __future__ import annotations

from typing import Any

import pytest

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy
from gantline.systems.heet.policies.policy import Prices, match, price_all, trade
from gantline.systems.heet.policies.variants import HeetVariants, Variant, read_variants

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
    [({"profile": "none"}, "profile"), ({"power": -1.0}, "power"), ({"kappa": float("nan")}, "kappa"), ({"residence": 0.0}, "residence")],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_policy("heet-like", settings)


@pytest.mark.parametrize("gpus", [3, 5, 6, 7, 11])
def test_a_job_of_an_odd_size_runs_when_it_is_alone(gpus: int) -> None:
    run = simulate([{"job": "odd", "arrival": 0.0, "gpus": gpus, "duration": 100.0}], f"1x{gpus}", "heet-like")
    assert run.jobs["finish"].to_list() == [100.0]
