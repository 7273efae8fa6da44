"""An instance names every mistake: the job, the device type, and how to put it right."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.instance import Entity, Instance

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
