"""Kinds: what the program cannot tell apart becomes one row, and nothing else does."""

from __future__ import annotations

import numpy as np

from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.program import group, kinds


def test_equal_rows_are_one_kind_in_order_of_appearance() -> None:
    instance = Instance.of(types=("a", "b"), capacity=[3, 3], throughput=[[2, 1], [1, 3], [2, 1], [2, 1]])
    found = kinds(instance)
    assert found.of_job.tolist() == [0, 1, 0, 0]
    assert found.count.tolist() == [3, 1]
    assert found.first.tolist() == [0, 1]


def test_scale_and_given_columns_tell_jobs_apart() -> None:
    instance = Instance.of(types=("a",), capacity=[9], throughput=[[1], [1], [1], [1]], scale=[1, 1, 2, 2])
    assert len(kinds(instance)) == 2
    assert len(kinds(instance, np.array([5.0, 6.0, 5.0, 5.0]))) == 3


def test_all_partners_alike_leave_one_kind_of_job_and_one_of_pair() -> None:
    members = [[i, j] for i in range(4) for j in range(i + 1, 4)]
    instance = Instance.of(types=("a",), capacity=[2], throughput=np.ones((4, 1)), pairs=(members, np.full((6, 2, 1), 0.8)))
    found = kinds(instance)
    assert len(found) == 1
    assert found.pair_count.tolist() == [6]


def test_a_job_with_another_partner_is_of_another_kind() -> None:
    # A path a - b - c - d of equal jobs: the ends have one partner, the inner jobs two.
    instance = Instance.of(
        types=("a",),
        capacity=[2],
        throughput=np.ones((4, 1)),
        pairs=([[0, 1], [1, 2], [2, 3]], np.full((3, 2, 1), 0.8)),
    )
    found = kinds(instance)
    assert found.of_job.tolist() == [0, 1, 1, 0]
    assert found.of_pair.tolist() == [0, 1, 0]


def test_pairs_are_told_apart_by_speed_but_not_by_which_job_is_named_first() -> None:
    speeds = [[2.0], [3.0], [3.0], [2.0]]
    rates = [[[1.0], [1.5]], [[1.5], [1.0]]]  # (fast-slow seen from either side)
    instance = Instance.of(types=("a",), capacity=[2], throughput=speeds, pairs=([[0, 1], [2, 3]], rates))
    assert len(kinds(instance)) == 2
    assert kinds(instance).pair_count.tolist() == [2]


def test_lopsided_pairs_of_equal_jobs_separate_the_two() -> None:
    instance = Instance.of(types=("a",), capacity=[2], throughput=np.ones((2, 1)), pairs=([[0, 1]], [[[0.9], [0.4]]]))
    assert len(kinds(instance)) == 2


def test_grouping_survives_equal_hash_values(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from gantline.systems.gavel.policies import program as module

    monkeypatch.setattr(module, "_mix", lambda values: values * np.uint64(0))
    first, number = group(np.array([[1.0, 2.0], [2.0, 2.0], [1.0, 2.0]]))
    assert number.tolist() == [0, 1, 0]
    assert first.tolist() == [0, 1]
