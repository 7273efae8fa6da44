"""Fairness over time and among owners: finish-time memory, entities, the partial-allocation discount, blind baselines, parts (POP)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.systems.gavel.feasible import excess

from gantline.core.errors import NotFoundError, UsageError
from gantline.systems.gavel.policies.allocation import effective_throughput
from gantline.systems.gavel.policies.fair_policies import max_min_fairness, nash_welfare, strategy_proof, water_filling
from gantline.systems.gavel.policies.finish_policies import finish_time_fairness
from gantline.systems.gavel.policies.instance import Entity, Instance
from gantline.systems.gavel.policies.optimised import deal_devices, deal_jobs, mean_speed, solve_in_parts, speed_of, unit_speed
from gantline.systems.gavel.policies.solving import Solving

TWO = Instance.of(
    types=("k80", "p100", "v100"),
    capacity=[3, 2, 1],
    throughput=[[0.5, 1, 2], [1, 2, 3]],
    steps=[300, 500],
    elapsed=[0, 0],
)


def test_what_a_job_has_done_is_credited_at_its_isolated_speed_of_that_time() -> None:
    _, memory = finish_time_fairness(TWO)
    found, after = finish_time_fairness(replace(TWO, steps=np.array([200.0, 300.0])), json.loads(json.dumps(memory)))
    assert found.objective == pytest.approx(0.402778, abs=1e-5)
    assert after["isolated_time"][0] == [0, pytest.approx(100 / (0.5 / 2 + 1 / 3 + 2 / 6))]


def test_without_jobs_the_credit_is_kept_and_the_previous_call_forgotten() -> None:
    _, memory = finish_time_fairness(TWO)
    _, memory = finish_time_fairness(replace(TWO, steps=np.array([200.0, 300.0])), memory)
    found, empty = finish_time_fairness(TWO.subset(np.array([], dtype=np.int64)), memory)
    assert found.share.shape == (0, 3)
    assert empty["last"] == []
    assert empty["isolated_time"] == memory["isolated_time"]


def test_a_job_that_waited_long_gets_more() -> None:
    late = replace(TWO, throughput=np.tile([1.0, 2.0, 4.0], (2, 1)), steps=np.array([900.0, 900.0]), elapsed=np.array([0.0, 2000.0]))
    found, _ = finish_time_fairness(late)
    fresh, waited = effective_throughput(late, found)
    assert waited > 1.5 * fresh


def test_weights_enter_only_when_asked_for() -> None:
    heavy = replace(TWO, weight=np.array([3.0, 1.0]))
    assert finish_time_fairness(heavy)[0].objective == pytest.approx(finish_time_fairness(TWO)[0].objective)
    late = replace(heavy, elapsed=np.array([100.0, 0.0]))
    assert finish_time_fairness(late, by_weight=True)[0].objective != pytest.approx(finish_time_fairness(late)[0].objective)


def owned(rule: str, weights: tuple[float, float] = (1.0, 2.0)) -> Instance:
    """Entity A owns two jobs, B owns two; all alike, so levels show weights."""
    return Instance.of(
        types=("gpu",),
        capacity=[1],
        throughput=np.ones((4, 1)),
        entities=[Entity("A", weights[0], rule), Entity("B", weights[1], "fairness")],  # type: ignore[arg-type]
        entity=[0, 0, 1, 1],
    )


def test_entities_share_by_weight_and_their_jobs_equally() -> None:
    found = effective_throughput(owned("fairness"), water_filling(owned("fairness")))
    assert found == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3], abs=1e-4)


def test_inside_a_fifo_entity_the_first_job_gets_all_of_the_weight() -> None:
    found = effective_throughput(owned("fifo"), water_filling(owned("fifo")))
    assert found == pytest.approx([1 / 3, 0.0, 1 / 3, 1 / 3], abs=1e-4)


def test_what_a_satisfied_job_cannot_use_goes_to_the_others() -> None:
    # Three devices, four jobs: B's two jobs are full at one each, the rest is A's.
    instance = replace(owned("fairness", (1.0, 10.0)), capacity=np.array([3.0]))
    assert effective_throughput(instance, water_filling(instance)) == pytest.approx([0.5, 0.5, 1.0, 1.0], abs=1e-4)


def test_water_filling_by_kinds_equals_job_by_job() -> None:
    rng = np.random.default_rng(4)
    models = rng.uniform(0.5, 5.0, size=(3, 2))
    instance = Instance.of(types="ab", capacity=[3, 4], throughput=models[np.arange(12) % 3], scale=1 + np.arange(12) % 2)
    by_kinds, apart = water_filling(instance), water_filling(instance, Solving(by_kinds=False))
    assert effective_throughput(instance, by_kinds) == pytest.approx(effective_throughput(instance, apart), rel=2e-4)


def test_the_discount_takes_what_a_job_costs_the_others() -> None:
    instance = Instance.of(types="kpv", capacity=[1, 1, 1], throughput=[[0.5, 1, 2], [1, 2, 3], [1, 1, 1]])
    found, discount = strategy_proof(instance)
    assert discount == pytest.approx([2 / 3, 1, 1], abs=1e-4)
    assert found.share[0] == pytest.approx([0, 0, 2 / 3], abs=1e-3)


def test_two_jobs_are_enough_and_one_job_pays_nothing() -> None:
    pair = Instance.of(types="a", capacity=[1], throughput=[[1.0], [4.0]])
    found, discount = strategy_proof(pair)
    assert discount == pytest.approx([0.5, 0.5], abs=1e-4)  # alone the other would have had all
    assert found.share == pytest.approx(np.full((2, 1), 0.25), abs=1e-4)
    alone = pair.subset(np.array([0]))
    assert strategy_proof(alone)[1].tolist() == [1.0]


def test_weights_count_in_the_welfare() -> None:
    instance = Instance.of(types="a", capacity=[1], throughput=[[1.0], [1.0]], weight=[3.0, 1.0])
    allocation, _, _ = nash_welfare(instance)
    assert allocation.share == pytest.approx(np.array([[0.75], [0.25]]), abs=1e-4)


def test_blind_policies_keep_what_is_impossible_but_no_speeds() -> None:
    instance = replace(TWO, throughput=np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]))
    assert unit_speed(instance).throughput.tolist() == [[0, 1, 1], [1, 1, 1]]
    assert unit_speed(instance, keep_zeros=False).throughput.min() == 1.0
    assert mean_speed(instance).throughput[1] == pytest.approx([10 / 6] * 3)
    assert mean_speed(instance).throughput[0, 0] == 0.0
    assert speed_of(instance, "v100").throughput.tolist() == [[2, 2, 2], [3, 3, 3]]
    assert max_min_fairness(unit_speed(instance)).share[0, 0] == 0.0


def test_an_unknown_reference_type_is_named() -> None:
    with pytest.raises(NotFoundError, match="v100"):
        speed_of(TWO, "v10")


# POP: parts are small copies of the whole, nothing is lost in dealing, and the joined answer is nearly as good.


def crowd(jobs: int = 64) -> Instance:
    rng = np.random.default_rng(5)
    models = rng.uniform(0.5, 8.0, size=(4, 3))
    return Instance.of(types="abc", capacity=[jobs // 4] * 3, throughput=models[np.arange(jobs) % 4])


def test_all_devices_are_dealt_and_leftovers_go_round() -> None:
    dealt = deal_devices(np.array([5.0, 3.0, 4.0]), 4)
    assert np.sum(dealt, axis=0).tolist() == [5, 3, 4]
    assert [part.sum() for part in dealt] == [3, 3, 3, 3]


def test_every_part_gets_the_same_mix_of_jobs() -> None:
    instance = crowd()
    part = deal_jobs(instance, 4)
    assert np.bincount(part).tolist() == [16, 16, 16, 16]
    for p in range(4):
        assert np.unique(instance.throughput[part == p], axis=0).shape[0] == 4


def test_the_joined_answer_is_feasible_and_nearly_as_good() -> None:
    instance = crowd()
    whole, parts = max_min_fairness(instance), solve_in_parts(instance, max_min_fairness, 4)
    assert excess(instance, parts) < 1e-9
    assert parts.objective >= 0.98 * whole.objective
    ratio = effective_throughput(instance, parts) / effective_throughput(instance, whole)
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)


def test_pairs_across_parts_get_nothing() -> None:
    members = [[i, j] for i in range(4) for j in range(i + 1, 4)]
    instance = Instance.of(types="a", capacity=[2], throughput=np.ones((4, 1)), pairs=(members, np.full((6, 2, 1), 0.9)))
    part = deal_jobs(instance, 2)
    found = solve_in_parts(instance, max_min_fairness, 2)
    across = [part[a] != part[b] for a, b in members]
    assert found.paired[across].sum() == 0.0
    assert found.paired.sum() > 0.5
    assert excess(instance, found) < 1e-9


def test_one_part_is_the_whole() -> None:
    instance = crowd(8)
    assert solve_in_parts(instance, max_min_fairness, 1).share == pytest.approx(max_min_fairness(instance).share)


def test_no_part_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="give 1 or more"):
        solve_in_parts(crowd(8), max_min_fairness, 0)
