"""An instance names every mistake: the job, the device type, and how to put it right; what it cannot tell apart is one kind."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.instance import Entity, Instance
from gantline.systems.gavel.policies.program import group, kinds

TYPES = ("k80", "p100", "v100")
SPEEDS = [[0.5, 1.0, 2.0], [1.0, 2.0, 3.0]]


def two_jobs(**changes: object) -> Instance:
    given: dict[str, object] = {"types": TYPES, "capacity": [1, 1, 1], "throughput": SPEEDS, "jobs": ["a", "b"]}
    return Instance.of(**(given | changes))  # type: ignore[arg-type]


def test_defaults_are_single_devices_of_equal_weight() -> None:
    instance = two_jobs()
    assert instance.scale.tolist() == [1, 1]
    assert instance.weight.tolist() == [1, 1]
    assert len(instance) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"throughput": [[0.5, np.nan, 2.0], SPEEDS[1]]}, ["'a'", "'p100'", "missing", "0 where"]),
        ({"throughput": [[0.5, None, 2.0], SPEEDS[1]]}, ["'a'", "'p100'", "missing"]),
        ({"throughput": [[0.5, 1.0, 2.0], [1.0, -2.0, 3.0]]}, ["'b'", "'p100'", "negative"]),
        ({"throughput": [[0.5, "fast", 2.0], SPEEDS[1]]}, ["'fast'", "not a number", "throughput"]),
        ({"throughput": [[0.5, np.inf, 2.0], SPEEDS[1]]}, ["'a'", "infinite"]),
        ({"throughput": [[0.5, 1.0], [1.0, 2.0]]}, ["shape (2, 2)", "one column per type"]),
        ({"throughput": [[0.5, 1.0], [1.0, 2.0, 3.0]]}, ["differ in length"]),
        ({"scale": [1, 0]}, ["'b'", "scale factor", "at least one device"]),
        ({"weight": [1, -1]}, ["'b'", "weight"]),
        ({"capacity": [1, -1, 1]}, ["'p100'", "capacity is negative"]),
        ({"capacity": [1, 1]}, ["2 entries, not 3"]),
        ({"price": [1.0, 0.0, 3.0]}, ["'p100'", "price"]),
        ({"price": [1.0, np.nan, 3.0]}, ["'p100'", "price is missing"]),
        ({"steps": [10, -1]}, ["'b'", "steps left are negative"]),
        ({"jobs": ["a", "a"]}, ["listed twice"]),
        ({"entities": [Entity("A")], "entity": [0, 1]}, ["'b'", "entity is unknown"]),
    ],
)
def test_mistakes_are_named(changes: dict[str, object], words: list[str]) -> None:
    with pytest.raises(UsageError) as refusal:
        two_jobs(**changes)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("members", "rates", "changes", "words"),
    [
        ([[0, 1]], [[[0.3, 0.6, 1.2], [0.6, np.nan, 1.8]]], {}, ["'a' + 'b'", "'p100'", "missing"]),
        ([[0, 1]], [[[0.3, 0.6, 1.2], [0.6, -1, 1.8]]], {}, ["'p100'", "negative"]),
        ([[0, 1]], [[[0.3, 0.0, 1.2], [0.6, 1.0, 1.8]]], {}, ["'p100'", "only one of the two"]),
        ([[0, 0]], [[[0.3, 0.6, 1.2], [0.6, 1.0, 1.8]]], {}, ["with itself"]),
        ([[0, 1], [1, 0]], [[[1, 1, 1], [1, 1, 1]]] * 2, {}, ["listed twice"]),
        ([[0, 2]], [[[1, 1, 1], [1, 1, 1]]], {}, ["not listed"]),
        ([[0, 1]], [[[1, 1, 1], [1, 1, 1]]], {"scale": [1, 2]}, ["differ in size"]),
        ([[0, 1]], [[[1, 1, 1], [1, 1, 1]]], {"throughput": [[0, 1, 2], [1, 2, 3]]}, ["'k80'", "cannot run there"]),
    ],
)
def test_mistakes_in_pairs_are_named(members: object, rates: object, changes: dict[str, object], words: list[str]) -> None:
    with pytest.raises(UsageError) as refusal:
        two_jobs(pairs=(members, rates), **changes)
    for word in words:
        assert word in str(refusal.value)


def test_pairs_are_turned_so_that_the_earlier_job_stands_first() -> None:
    instance = two_jobs(pairs=([[1, 0]], [[[0.6, 1.2, 1.8], [0.3, 0.6, 1.2]]]))
    assert instance.pairs is not None
    assert instance.pairs.members.tolist() == [[0, 1]]
    assert instance.pairs.throughput[0, 0].tolist() == [0.3, 0.6, 1.2]


def test_a_policy_says_which_column_it_misses() -> None:
    with pytest.raises(UsageError, match="needs 'steps'"):
        two_jobs().needing("steps")


def test_a_subset_keeps_the_pairs_of_its_jobs() -> None:
    instance = Instance.of(
        types=("g",),
        capacity=[2],
        throughput=[[1], [2], [3]],
        pairs=([[0, 1], [1, 2]], np.ones((2, 2, 1))),
        steps=[1, 2, 3],
    )
    part = instance.subset(np.array([1, 2]))
    assert part.jobs == (1, 2)
    assert part.pairs is not None
    assert part.pairs.members.tolist() == [[0, 1]]
    assert part.steps is not None
    assert part.steps.tolist() == [2, 3]


# Kinds: what the program cannot tell apart becomes one row, and nothing else does.


def test_equal_rows_are_one_kind_in_order_of_appearance() -> None:
    instance = Instance.of(types=("a", "b"), capacity=[3, 3], throughput=[[2, 1], [1, 3], [2, 1], [2, 1]])
    found = kinds(instance)
    assert found.of_job.tolist() == [0, 1, 0, 0]
    assert found.count.tolist() == [3, 1]
    assert found.first.tolist() == [0, 1]


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


def test_grouping_survives_equal_hash_values(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from gantline.systems.gavel.policies import program as module

    monkeypatch.setattr(module, "_mix", lambda values: values * np.uint64(0))
    first, number = group(np.array([[1.0, 2.0], [2.0, 2.0], [1.0, 2.0]]))
    assert number.tolist() == [0, 1, 0]
    assert first.tolist() == [0, 1]
