"""The baselines mean what their papers say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.systems.allox import reference

from gantline.core.errors import UsageError
from gantline.simulator.simulate import simulate
from gantline.systems.allox.importer import read
from gantline.systems.allox.policies import baselines
from gantline.systems.allox.policies.baselines import FillMisfit, Pool, Ways, Worth, exchange_rates, interchangeable

CPU, GPU = 0, 1
CPU_NEED, GPU_NEED = (20.0, 0.0, 8.0), (0.0, 1.0, 2.0)
GPU_FIRST = np.array([1, 0])
COMPUTE = np.array([True, True, False])


def pool_of(capacity: np.ndarray, used: np.ndarray) -> Pool:
    """A pool in which everything not used is free."""
    return Pool(capacity, capacity - used.sum(axis=0), used, np.ones(len(used)))


def cluster(gpus: int = 2, nodes: int = 2, users: int = 2, used: list[list[float]] | None = None) -> Pool:
    capacity = np.array([20.0 * nodes, gpus, 64.0 * (gpus + nodes)])
    return pool_of(capacity, np.zeros((users, 3)) if used is None else np.array(used, dtype=float))


def either(*jobs: tuple[int, float, float]) -> Ways:
    """Jobs of (user, CPU time, GPU time)."""
    count = len(jobs)
    return Ways(
        np.array([user for user, _, _ in jobs], dtype=np.int64),
        np.repeat(np.arange(count), 2),
        np.tile([CPU, GPU], count),
        np.array([time for _, cpu, gpu in jobs for time in (cpu, gpu)]),
        np.tile([CPU_NEED, GPU_NEED], (count, 1)).reshape(-1, 3),
    )


def named(ways: Ways, started: np.ndarray) -> list[tuple[int, str]]:
    return [(int(ways.job[w]), "cpu" if ways.kind[w] == CPU else "gpu") for w in started]


def test_drf_gives_the_example_of_its_paper() -> None:
    # 9 cores and 18 GB; tasks of A need <1 core, 4 GB>, of B <3 cores, 1 GB>: three tasks of A, two of B.
    need = np.array([[1.0, 4.0]] * 5 + [[3.0, 1.0]] * 5)
    owner = np.array([0] * 5 + [1] * 5)
    ways = Ways(owner, np.arange(10), np.zeros(10, dtype=np.int64), np.ones(10), need)
    started = baselines.drf(ways, pool_of(np.array([9.0, 18.0]), np.zeros((2, 2))), order="fifo")
    assert np.bincount(owner[started]).tolist() == [3, 2]


@pytest.mark.parametrize(
    ("misfit", "expected"),
    [(FillMisfit.STOP, []), (FillMisfit.PASS, [(2, "cpu")]), (FillMisfit.SKIP, [(1, "cpu"), (2, "cpu")])],
)
def test_what_happens_when_a_job_does_not_fit(misfit: FillMisfit, expected: list[tuple[int, str]]) -> None:
    ways = either((0, 99, 5), (0, 30, 99), (1, 10, 99))
    fastest = ways.only(ways.fastest(GPU_FIRST))
    no_gpu_left = cluster(users=2, used=[[0, 0, 0], [0, 2, 4]])
    assert named(fastest, baselines.drf(fastest, no_gpu_left, misfit=misfit)) == expected


def test_weights_divide_shares() -> None:
    ways = either(*[(user, 99, 10) for user in (0, 0, 0, 0, 1, 1, 1, 1)])
    on_gpu = ways.only(ways.kind == GPU)
    pool = cluster(gpus=4)
    heavy = Pool(pool.capacity, pool.free, pool.used, np.array([3.0, 1.0]))
    started = baselines.drf(on_gpu, heavy)
    assert np.bincount(on_gpu.user[started]).tolist() == [3, 1]


def test_extended_drf_counts_a_gpu_as_many_cores() -> None:
    ways = either((0, 99, 9), (1, 99, 9))
    holds_a_gpu_or_a_node = [[0, 1, 2], [20, 0, 8]]
    one_left = cluster(gpus=2, nodes=1, used=holds_a_gpu_or_a_node)
    dear_gpus = interchangeable(np.array([1.0, 100.0, 1.0]), COMPUTE)
    cheap_gpus = interchangeable(np.array([1.0, 10.0, 1.0]), COMPUTE)
    assert named(ways, baselines.drf_extended(ways, one_left, dear_gpus, GPU_FIRST)) == [(1, "gpu")]
    assert named(ways, baselines.drf_extended(ways, one_left, cheap_gpus, GPU_FIRST)) == [(0, "gpu")]


def test_exchange_rate_is_the_mean_ratio_of_work() -> None:
    ways = either((0, 100, 10), (0, 60, 20))
    unit = np.array([CPU, GPU])
    assert exchange_rates(ways, unit, base=CPU)[GPU] == pytest.approx((20 * 10 + 20 * 3) / 2)
    assert exchange_rates(ways, unit, base=CPU)[CPU] == 1.0
    assert exchange_rates(ways.only(ways.kind == GPU), unit, base=CPU)[GPU] == 1.0


def test_exchange_rate_of_the_experiment_is_the_printed_one() -> None:
    jobs = [(0, float(row["cpu_time_s"]), float(row["gpu_time_s"])) for row in reference.rows("trace_experiment_40.csv")]
    assert f"{exchange_rates(either(*jobs), np.array([CPU, GPU]), base=CPU, start=32.0)[GPU]:.1f}" == "93.0"


def test_equal_share_keeps_everyone_to_a_part_even_if_others_are_idle() -> None:
    ways = either(*[(0, 50, 10)] * 9)
    started = baselines.equal_share(ways, cluster(gpus=4, nodes=4), GPU_FIRST)
    assert named(ways, started) == [(0, "gpu"), (1, "gpu"), (2, "cpu"), (3, "cpu")]


def test_equal_share_put_right_is_quicker_than_the_artifacts() -> None:
    run = simulate(read(reference.path("trace_experiment_40.csv")), "gpu:4x1/0c/64g,cpu:8x0/20c/64g", "es")
    artifacts_mean = 3879.63
    assert run.summary["average_jct"] < 0.97 * artifacts_mean


def test_fair_share_hands_idle_users_parts_on() -> None:
    ways = either(*[(0, 50, 10)] * 9)
    started = baselines.fair_share(ways, cluster(gpus=4, nodes=2), GPU_FIRST)
    assert len(started) == 6
    both = either(*[(user, 50, 10) for user in (0, 0, 0, 0, 1)])
    started = baselines.fair_share(both, cluster(gpus=4, nodes=0), GPU_FIRST)
    assert sorted(both.user[started].tolist()) == [0, 0, 0, 1]


METHODS: dict[str, Callable[[Ways, Pool], np.ndarray]] = {
    "drf": lambda ways, pool: baselines.drf(ways, pool),
    "drf_extended": lambda ways, pool: baselines.drf_extended(ways, pool, Worth.separate(3), GPU_FIRST),
    "equal_share": lambda ways, pool: baselines.equal_share(ways, pool, GPU_FIRST),
    "fair_share": lambda ways, pool: baselines.fair_share(ways, pool, GPU_FIRST),
    "sjf": baselines.sjf,
    "allox_plus": lambda ways, pool: baselines.allox_plus(ways, pool, np.arange(len(ways.owner)) * 60.0, now=900.0),
}
JOBS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=12)


@pytest.mark.parametrize("name", METHODS)
@FEWER
@given(jobs=JOBS, gpus=st.integers(0, 4), nodes=st.integers(1, 4))
def test_nobody_starts_twice_and_nothing_is_given_twice(name: str, jobs: list[tuple[int, float, float]], gpus: int, nodes: int) -> None:
    ways, pool = either(*jobs), cluster(gpus, nodes, users=3)
    started = METHODS[name](ways, pool)
    assert len(set(ways.job[started].tolist())) == len(started)
    left = pool.free - ways.need[started].sum(axis=0)
    assert np.all(left >= 0)
    if name != "equal_share":
        waiting = ~np.isin(ways.job, ways.job[started])
        assert not np.any(np.all(ways.need[waiting] <= left, axis=1)), "something that fits was left waiting"


def test_mistakes_are_named() -> None:
    with pytest.raises(UsageError, match="job 1 has the estimated time 0 on type 0"):
        either((0, 5, 5), (0, 0, 5))
    with pytest.raises(UsageError, match="positive weight"):
        Pool(np.ones(2), np.ones(2), np.zeros((1, 2)), np.array([0.0]))
    with pytest.raises(UsageError, match="no resource is marked"):
        interchangeable(np.ones(2), np.array([False, False]))
