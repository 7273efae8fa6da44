"""The sizes of a job are the same whether it lists them or names a range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.engine.assigning import watched

from gantline.core.options import JobSize
from gantline.core.phases import Phase
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.models.model import PerformanceModel
from gantline.policies.elastic.pools import pools
from gantline.policies.fifo import Fifo
from gantline.policies.registry import find_policy
from gantline.simulator.simulate import simulate


def sizes_seen(job: dict[str, Any], cluster: str = "gpu:1x8", **options: Any) -> list[list[JobSize]]:
    """What a policy sees of one job, decision by decision; the bulk form says the same."""
    seen: list[list[JobSize]] = []

    def look(snapshot: Snapshot) -> None:
        tables = [snapshot.jobs.sizes_table(kind) for kind in range(len(snapshot.cluster.types))]
        in_bulk = [JobSize(kind, *one) for kind, table in enumerate(tables) for one in zip(table.size.tolist(), table.rate.tolist())]
        seen.append(snapshot.jobs.sizes(0))
        assert sorted(in_bulk) == sorted(seen[-1])

    simulate([{"job": "a", "arrival": 0.0, "duration": 100.0} | job], cluster, watched(Fifo, look), executor="acknowledged", **options)
    return seen


def test_a_range_has_every_size_in_it_in_proportion():
    (*_, sizes) = sizes_seen({"gpus": 2, "min_gpus": 1, "max_gpus": 3})
    assert sizes == [JobSize(0, 1, 0.5), JobSize(0, 2, 1.0), JobSize(0, 3, 1.5)]


def test_a_job_that_lists_sizes_has_those_within_its_bounds_in_rising_order():
    (*_, sizes) = sizes_seen({"gpus": 1, "min_gpus": 1, "max_gpus": 2, "options": "gpu:2=50|gpu:1=100|gpu:4=40"})
    assert sizes == [JobSize(0, 1, 1.0), JobSize(0, 2, 2.0)]


def test_a_job_lists_its_types_in_its_own_order():
    (*_, sizes) = sizes_seen({"gpus": 2, "options": "b:2=100|a:2=200"}, "a:1x2,b:1x2")
    assert [(size.type, size.gpus) for size in sizes] == [(1, 2), (0, 2)]


def test_a_rigid_job_has_one_size():
    assert sizes_seen({"gpus": 3})[0] == [JobSize(0, 3, 1.0)]


def test_a_performance_model_says_how_fast_other_sizes_are():
    class Half(PerformanceModel):
        def rate(self, job, type, gpus):
            return {1: 0.7, 2: None, 3: 0.0}[gpus]

    (*_, sizes) = sizes_seen({"gpus": 2, "min_gpus": 1, "max_gpus": 3, "options": "gpu:4=100"}, performance=Half())
    assert sizes == [JobSize(0, 1, 0.7), JobSize(0, 2, 0.5)]


def test_speeds_that_a_run_keeps_to_itself_are_what_anybody_would_guess():
    """Two GPUs are not twice as fast, but the job has not shown it yet."""
    job = {"gpus": 1, "min_gpus": 1, "max_gpus": 2, "options": "gpu:1=100|gpu:2=90"}
    assert [size.rate for size in sizes_seen(job, scaling="learned:0")[0]] == [1.0, 2.0]
    assert [size.rate for size in sizes_seen(job)[0]] == pytest.approx([1.0, 100 / 90])


def test_a_job_that_is_stopping_runs_in_no_way():
    seen = set()

    def look(snapshot):
        jobs = snapshot.jobs
        seen.update(zip(jobs.phase.tolist(), (jobs.option >= 0).tolist()))

    jobs = [
        {"job": name, "arrival": at, "gpus": 1, "duration": work}
        for name, at, work in (("a", 0.0, 900.0), ("b", 50.0, 90.0), ("c", 50.5, 9.0))
    ]
    simulate(
        jobs, "1x1", watched(find_policy("srtf"), look), executor=FaultyExecutor(np.array([900.0, 90.0, 9.0]), Faults(stop=(30.0, 30.0)))
    )
    assert (int(Phase.CHECKPOINTING), False) in seen
    assert not {(int(Phase.CHECKPOINTING), True), (int(Phase.STOPPING), True)} & seen


def test_our_elastic_policies_see_the_sizes_that_jobs_name():
    """What a pool is shared out by is what `jobs.sizes` says of each of its jobs, as far as the pool has devices."""
    compared = []

    def compare(snapshot):
        for pool in pools(snapshot):
            for place, job in enumerate(pool.jobs.tolist()):
                own = slice(pool.curves.first[place], pool.curves.first[place + 1])
                read = list(zip(pool.curves.size[own].tolist(), pool.curves.rate[own].tolist()))
                named = [(size.gpus, size.rate) for size in snapshot.jobs.sizes(job) if size.type == pool.kind]
                compared.append((read, [one for one in named if one[0] <= pool.capacity]))

    ways = ("", "a:2=100", "a:1=100|a:2=60|a:4=40", "a:2=100|b:1=90|b:3=50", "b:4=10|b:4=8|b:8=5")
    ranges = ((1, 3), (2, 2), (2, 9), (1, 8))
    cells = [(text, least, most) for text in ways for least, most in ranges]
    jobs = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": 2, "duration": 100.0, "min_gpus": least, "max_gpus": most, "options": text, "type": "a"}
        for k, (text, least, most) in enumerate(cells)
    ]
    simulate(jobs, "a:2x4,b:2x8", watched(Fifo, compare), executor="acknowledged", until=1.0)
    assert [read for read, _ in compared] == [named for _, named in compared]
    assert sum(len(read) for read, _ in compared) > len(jobs)
