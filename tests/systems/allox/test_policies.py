"""AlloX and its baselines on the engine: jobs with alternatives in, who ran where out."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.jobs import by_job, held_by, job_row
from tests.systems.allox.hybrid import POLICIES, cluster, job, some_jobs

from gantline.core.errors import GantlineError, RefusedError, TraceError, UsageError
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate


def ran_on(run: Run) -> dict[str, list[str]]:
    spans = run.allocations.group_by("job", maintain_order=True).agg("type")
    return dict(zip(spans["job"].to_list(), spans["type"].to_list()))


def test_allox_gives_the_gpu_to_whom_it_helps_most() -> None:
    jobs = [job("steady", 100, 110), job("sped-up", 100, 900)]
    assert ran_on(simulate(jobs, cluster(1, 1), "allox")) == {"steady": ["cpu"], "sped-up": ["gpu"]}


def test_allox_waits_for_a_gpu_where_shortest_first_takes_the_slow_cores() -> None:
    jobs = [job("first", 50, 5000), job("second", 40, 2000, arrival=10.0)]
    assert ran_on(simulate(jobs, cluster(1, 1), "allox"))["second"] == ["gpu"]
    assert ran_on(simulate(jobs, cluster(1, 1), "allox.sjf"))["second"] == ["cpu"]


def test_preemptive_allox_moves_a_job_when_a_better_use_of_its_gpu_comes() -> None:
    jobs = [job("early", 1000, 1100), job("late", 500, 9000, arrival=100.0)]
    stays = simulate(jobs, cluster(1, 1), "allox", settings={"alpha": 1.0})
    moves = simulate(jobs, cluster(1, 1), "allox", settings={"alpha": 1.0, "preemptive": True})
    assert ran_on(stays) == {"early": ["gpu"], "late": ["gpu"]}
    assert ran_on(moves)["late"] == ["gpu"]
    assert ran_on(moves)["early"][:2] == ["gpu", "cpu"]
    assert moves.summary["average_jct"] < stays.summary["average_jct"]


def test_a_gang_starts_whole_and_is_passed_until_it_has_aged() -> None:
    def gpu_job(name: str, gpus: int, seconds: float, arrival: float) -> dict[str, Any]:
        return job_row(name, gpus, seconds, at=arrival, options=f"gpu:{gpus}={seconds:g}")

    early = [gpu_job(f"early{k}", 1, 60.0 + 20.0 * k, 0.0) for k in range(4)]
    jobs = [*early, gpu_job("gang", 4, 100.0, 1.0), gpu_job("late", 1, 50.0, 61.0)]
    ways: list[dict[str, Any]] = [{"age": 1000.0, "fill": False}, {"age": 30.0, "fill": False}, {"age": 30.0}]
    passed, aged, filled = (simulate(jobs, "gpu:2x2", "allox", settings=way) for way in ways)
    starts = [by_job(run, "first_start") for run in (passed, aged, filled)]
    assert (starts[0]["late"], starts[0]["gang"]) == (61.0, 120.0)
    assert (starts[1]["late"], starts[1]["gang"]) == (220.0, 120.0)
    assert (starts[2]["late"], starts[2]["gang"]) == (61.0, 120.0)  # it is done at 111, before the gang can start
    assert held_by(aged, "gang")["devices"].to_list() == [[0, 1, 2, 3]]


def test_a_node_without_memory_holds_a_job_back_but_not_its_neighbours() -> None:
    large = job_row("large", 1, 10.0, options="gpu:1/0/60=10")
    other = job_row("other", 1, 20.0, options="gpu:1/0/30=20")
    third = job_row("third", 1, 30.0, options="gpu:1/0/30=30")
    for name in POLICIES:
        run = simulate([large, other, third], "gpu:1x2/0c/64g", name)
        assert run.summary["completed"] == 3
        assert run.summary["incidents"] == 0
        together = run.allocations.filter(pl.col("start") == 0.0)["job"].to_list()
        assert together in (["large"], ["other", "third"])


def test_cores_alone_may_be_used_beside_gpus_of_the_same_node() -> None:
    jobs = [
        job_row("gpu", 1, 50.0, options="v100:1/4=50"),
        job_row("cores", 0, 70.0, options="v100:0/8=70"),
    ]
    run = simulate(jobs, "v100:1x1/12c", "allox")
    assert run.jobs["first_start"].to_list() == [0.0, 0.0]


def test_weights_give_a_user_a_larger_part() -> None:
    jobs = [job(f"{user}{k}", 100, 1e5, user=user) for k in range(12) for user in ("ann", "bob")]
    for name in ("drf", "allox"):
        run = simulate(jobs, cluster(3, 1), name, settings={"weights": "bob=2"} | ({"alpha": "0.1"} if name == "allox" else {}))
        early = run.allocations.filter((pl.col("end") <= 600.0) & (pl.col("type") == "gpu"))["job"].str.slice(0, 3)
        counts = dict(early.value_counts().iter_rows())
        assert counts["bob"] == 12
        assert counts["ann"] == 6


def test_the_weight_column_of_a_trace_counts_too() -> None:
    jobs = [job(f"{user}{k}", 100, 1e5, user=user, weight={"ann": 1.0, "bob": 2.0}[user]) for k in range(6) for user in ("ann", "bob")]
    run = simulate(jobs, cluster(3, 1), "drf")
    first = run.allocations.filter((pl.col("start") == 0.0) & (pl.col("type") == "gpu"))["job"].to_list()
    assert sorted(name[:3] for name in first) == ["ann", "bob", "bob"]


def test_a_weight_for_a_user_without_jobs_changes_nothing() -> None:
    jobs = some_jobs(3, 30)
    for name in ("allox", "drf", "es", "fs"):
        plain, named = (simulate(jobs, cluster(2, 2), name, settings=given) for given in ({}, {"weights": "nobody=5"}))
        assert named.jobs["finish"].to_list() == plain.jobs["finish"].to_list()


def flood(seed: int, long_job: int, count: int) -> list[dict[str, Any]]:
    """A long job of a quiet user among short ones that arrive faster than one GPU and one node can run them."""
    rng = np.random.default_rng(seed)
    short = [float(rng.integers(5, 15)) for _ in range(count)]
    noisy = [job(f"n{k}", on_gpu, 9 * on_gpu, arrival=3.0 * k, user="noisy") for k, on_gpu in enumerate(short)]
    return sorted([job("quiet", long_job, 9 * long_job, arrival=5.0, user="quiet"), *noisy], key=lambda row: row["arrival"])


@FEWER
@given(seed=st.integers(0, 10**6), long_job=st.integers(100, 400), alpha=st.sampled_from([0.1, 0.5, 1.0]))
def test_with_ageing_no_user_starves(seed: int, long_job: int, alpha: float) -> None:
    age, longest = 60.0, 15 * 9
    run = simulate(flood(seed, long_job, 50), cluster(1, 1), "allox", settings={"alpha": alpha, "age": age})
    quiet = run.jobs.row(by_predicate=pl.col("job") == "quiet", named=True)
    assert quiet["responsiveness"] <= age + longest


@pytest.mark.parametrize(
    ("name", "given_settings", "told"),
    [
        ("allox", {"alpha": "0"}, "'alpha' is 0"),
        ("allox", {"alpha": "1.2"}, "'alpha' is 1.2"),
        ("allox", {"age": "-1"}, "'age' is -1"),
        ("drf", {"weights": "ann"}, "'ann' is not a weight"),
        ("allox", {"weights": "ann=0"}, "'ann=0' is not a weight"),
    ],
)
def test_wrong_parameters_are_named(name: str, given_settings: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        make_policy(name, given_settings)


@pytest.mark.parametrize(
    ("row", "error", "told"),
    [
        (job("a", 10, 20) | {"options": "tpu:1=10"}, TraceError, "asks for 'tpu'"),
        (job("a", 10, 20) | {"options": "gpu:8=10"}, TraceError, "can never run"),
        (job("a", 10, 20) | {"options": "cpu:0/64=10"}, TraceError, "can never run"),
        (job("a", 10, 20) | {"options": "gpu:1/0/99=10|cpu:0/20/99=30"}, TraceError, "can never run"),
        (job("a", 0, 20), GantlineError, "duration"),
        (job("a", 10, 20) | {"duration": -1.0}, GantlineError, "duration"),
        (job("a", 10, 20) | {"options": "gpu:1=0"}, GantlineError, "options"),
    ],
)
def test_jobs_that_cannot_be_run_are_refused(row: dict[str, Any], error: type[GantlineError], told: str) -> None:
    with pytest.raises(error, match=told):
        simulate([row], cluster(2, 2), "allox")


def test_without_estimates_only_first_come_first_served_remains() -> None:
    for name in POLICIES:
        if name == "drf-fifo":
            assert simulate(some_jobs(2, 5), cluster(1, 1), name, estimates="none").summary["completed"] == 5
            continue
        with pytest.raises(RefusedError, match="needs remaining"):
            simulate(some_jobs(2, 5), cluster(1, 1), name, estimates="none")
