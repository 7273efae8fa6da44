"""IRFsim's rules, one by one: the sort whose comparisons matter, the solver whose ties do, the matching that would hang."""

from __future__ import annotations

import hashlib
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import job_row

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError
from gantline.simulator.simulate import simulate
from gantline.systems.allox.imitation.irfsim import IrfsimTask, User
from gantline.systems.allox.imitation.matching import choose_jobs, match_slots
from gantline.systems.allox.imitation.methods import ContradictoryError, java_sort

AGE = 500.0


def test_pairs_are_sorted_by_the_comparisons_that_java_makes() -> None:
    """Differences are cut to whole seconds, which is not transitive: the order, and whether Java gives up, depend on what it compares."""
    told = []
    for size, spread in product((0, 1, 2, 15, 16, 17, 33, 64, 150, 400), (3.0, 40.0, 4000.0)):
        rng = np.random.default_rng(size)
        arrival, reported = np.sort(rng.uniform(0.0, 1000.0, size)), rng.uniform(1.0, 1.0 + spread, (size, 2))
        reported[: size // 3].sort(axis=0)

        def before(a: int, b: int, arrival: Floats = arrival, reported: Floats = reported) -> bool:
            old, other = 1200.0 - arrival[a // 2] >= AGE, 1200.0 - arrival[b // 2] >= AGE
            return bool(old) if old != other else int(reported[a // 2, a % 2] - reported[b // 2, b % 2]) < 0

        order = list(range(2 * size))
        try:
            java_sort(order, before)
        except ContradictoryError:
            order = []
        told.append(order)
    assert [len(order) for order in told].count(0) == 7
    assert hashlib.blake2b(repr(told).encode(), digest_size=6).hexdigest() == "82d6b4184971"


def test_java_order_of_a_consistent_comparison_is_any_stable_order() -> None:
    rng = np.random.default_rng(0)
    for size, values in product((0, 1, 2, 31, 32, 33, 64, 200, 700), (3, 40, 10_000)):
        items = [(int(value), place) for place, value in enumerate(rng.integers(0, values, size))]
        items[: size // 2] = sorted(items[: size // 2])
        expected = sorted(items, key=lambda item: item[0])
        java_sort(items, lambda a, b: a[0] < b[0])
        assert items == expected


def match_square(slots: Floats) -> list[int]:
    """The column of each row in a least-cost matching, with the original's choice among equals.

    Zero columns make the matrix square, column minima are taken off, every row takes its first free zero, and each
    row left over, in order, grows an alternating tree by the column of least slack.
    """
    size, jobs = slots.shape
    cost = np.zeros((size, size))
    cost[:, :jobs] = slots - slots.min(axis=0)
    row_label, column_label = np.zeros(size), np.zeros(size)
    column_of, row_of = np.full(size, -1), np.full(size, -1)
    for row in range(size):
        zeros = np.flatnonzero((cost[row] == 0) & (row_of < 0))
        if zeros.size:
            column_of[row], row_of[zeros[0]] = zeros[0], row
    for root in np.flatnonzero(column_of < 0):
        in_tree = np.zeros(size, dtype=bool)
        in_tree[root] = True
        parent, nearest = np.full(size, -1), np.full(size, root)
        slack = cost[root] - row_label[root] - column_label
        while True:
            column = int(np.where(parent < 0, slack, np.inf).argmin())
            step = slack[column]
            if step > 0:
                row_label[in_tree] += step
                column_label[parent >= 0] -= step
                slack[parent < 0] -= step
            parent[column] = nearest[column]
            row = row_of[column]
            if row < 0:
                break
            in_tree[row] = True
            reach = cost[row] - row_label[row] - column_label
            closer = (parent < 0) & (reach < slack)
            slack[closer], nearest[closer] = reach[closer], row
        while column >= 0:
            row = parent[column]
            column_of[row], row_of[column], column = column, row, column_of[row]
    return [int(column) for column in column_of]


def slots(avail: Floats, kind: Ints, arrival: Floats, time: Floats) -> Floats:
    """Every slot as a row, as the original writes the problem down."""
    base = avail[:, None] - arrival
    return np.concatenate([base + k * time[kind] for k in range(1, len(arrival) + 1)])


@given(
    seed=st.integers(0, 10**9),
    jobs=st.integers(1, 9),
    machines=st.integers(1, 7),
    even=st.booleans(),
    busy=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_solver_makes_the_choices_of_the_square_matrix(seed: int, jobs: int, machines: int, even: bool, busy: float) -> None:
    rng = np.random.default_rng(seed)
    kind = (rng.random(machines) < 0.5).astype(np.int64)
    avail = np.where(rng.random(machines) < busy, 100.0 + rng.integers(1, 60, machines) * rng.choice([1.0, 1.1]), 100.0)
    arrival = np.sort(rng.integers(0, 90, jobs).astype(float))
    time = rng.integers(1, 5 if even else 400, (2, jobs)) * (1.0 if even else 1.0 + rng.normal(0.0, 0.1, (2, jobs)))
    time = np.maximum(time, 0.01)
    expected = match_square(slots(avail, kind, arrival, time))
    assert match_slots(avail, kind, arrival, time).tolist() == [expected.index(job) for job in range(jobs)]


def test_a_job_that_lacks_memory_is_refused_where_the_original_hangs() -> None:
    large = job_row("large", 1, 5.0, options="gpu:1/0/90=5|cpu:0/20/1=900")
    other = job_row("other", 1, 9.0, options="gpu:1/0/90=9|cpu:0/20/1=900")
    with pytest.raises(RefusedError, match="lacks memory, and the original would try it for ever"):
        simulate([large, other], "gpu:2x1/0c/64g,cpu:1x0/20c/1g", "allox", regime="irfsim-known")


def test_the_size_limit_takes_the_shortest_on_either_device() -> None:
    count = 80
    waiting = [
        IrfsimTask(row, 0, 0.0, row, [1.0, 1.0], [1.0, 1.0], times, times)
        for row in range(count)
        if (times := [float(count - row), 1.0 + row])
    ]
    chosen = choose_jobs([User(1.0, waiting)])
    assert sorted(job.row for job in chosen) == [*range(25), *range(count - 25, count)]
