"""IRFsim's rules, one by one: the sort whose comparisons matter, and the matching that would hang."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.java_sort import java_sorted

from gantline.core.errors import RefusedError
from gantline.policies.allox.artifact import event
from gantline.policies.allox.artifact.queued import CPU, GPU, Queued
from gantline.policies.allox.artifact.sort import BROKEN, FINE, java_sort, scratch
from gantline.policies.allox.ways import Floats

AGE = 500.0


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 33, 64, 150, 400])
def test_pairs_are_sorted_by_the_comparisons_that_java_makes(size: int) -> None:
    rng = np.random.default_rng(size)
    for spread in (3.0, 40.0, 4000.0):
        arrival = np.sort(rng.uniform(0.0, 1000.0, size))
        reported = rng.uniform(1.0, 1.0 + spread, (size, 2))
        reported[: size // 3].sort(axis=0)
        order = np.arange(2 * size)

        def compare(a: int, b: int, arrival: Floats = arrival, reported: Floats = reported) -> int:
            old, other = 1200.0 - arrival[a // 2] >= AGE, 1200.0 - arrival[b // 2] >= AGE
            if old != other:
                return -1 if old else 1
            return int(reported[a // 2, a % 2] - reported[b // 2, b % 2])

        old = np.repeat(1200.0 - arrival >= AGE, 2).astype(np.float64)
        code = java_sort(order, reported.reshape(-1), old, np.empty(2 * size, dtype=np.int64), scratch())
        try:
            expected = java_sorted(np.arange(2 * size).tolist(), compare)
        except ValueError:  # where Java notices that the comparison contradicts itself
            assert code == BROKEN
        else:
            assert code == FINE
            assert order.tolist() == expected


def test_java_order_of_a_consistent_comparison_is_any_stable_order() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 31, 32, 33, 64, 200, 700):
        for values in (3, 40, 10_000):
            items = [(int(value), place) for place, value in enumerate(rng.integers(0, values, size))]
            items[: size // 2] = sorted(items[: size // 2])
            assert java_sorted(items, lambda a, b: a[0] - b[0]) == sorted(items, key=lambda item: item[0])


def test_a_job_that_lacks_memory_is_refused_where_the_original_hangs() -> None:
    queued = Queued(np.array([4]), np.array([0]), np.zeros(1), np.array([[9.0, 5.0]]), np.array([[[20.0, 0, 1], [0, 1.0, 99.0]]]))
    cluster = event.Cluster(np.array([GPU]), np.array([np.nan]), (0, 0), np.array([0.0, 1.0, 64.0]))
    with pytest.raises(RefusedError, match="job 4 lacks memory"):
        event.allox(queued, cluster, np.zeros(1), np.zeros((1, 2)), 0.0, 1.0)


def test_the_size_limit_takes_the_shortest_on_either_device() -> None:
    count = 80
    time = np.stack([np.arange(count, 0, -1.0), np.arange(1.0, count + 1)], axis=1)
    queued = Queued(np.arange(count), np.zeros(count, dtype=np.int64), np.zeros(count), time, np.zeros((count, 2, 3)))
    chosen = event.choose(list(range(count)), queued)
    assert sorted(chosen) == [*range(25), *range(count - 25, count)]
    assert time[chosen, CPU].min() == 1.0
