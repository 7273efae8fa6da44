"""POP: parts are small copies of the whole, nothing is lost in dealing, and the joined answer is nearly as good."""

from __future__ import annotations

import numpy as np
import pytest
from tests.systems.gavel.feasible import excess

from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.allocation import effective_throughput
from gantline.systems.gavel.policies.fair_policies import max_min_fairness
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.optimised import deal_devices, deal_jobs, solve_in_parts


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
