"""The sizes of a job are the same whether it lists them or names a range."""

from __future__ import annotations

import numpy as np

from gantline.core.options import Option
from gantline.core.phases import Phase
from gantline.core.sizes import JobSize, sizes_of_job
from gantline.drivers.faults import Faults
from gantline.drivers.faulty import FaultyExecutor
from gantline.policies.elastic.curves import read_curves
from gantline.policies.fifo import Fifo
from gantline.policies.registry import find_policy
from gantline.simulator.simulate import simulate


def test_a_range_has_every_size_in_it_in_proportion():
    assert sizes_of_job("a", [Option(0, 2, 1.0)], 1, 3) == [JobSize(0, 1, 0.5), JobSize(0, 2, 1.0), JobSize(0, 3, 1.5)]


def test_a_job_that_lists_sizes_has_those_within_its_bounds():
    listed = [Option(0, 1, 1.0), Option(0, 2, 1.8), Option(0, 4, 3.0)]
    assert sizes_of_job("a", listed, 1, 2) == [JobSize(0, 1, 1.0), JobSize(0, 2, 1.8)]


def test_a_rigid_job_has_one_size():
    assert sizes_of_job("a", [Option(0, 3, 1.0)], 3, 3) == [JobSize(0, 3, 1.0)]


def test_a_performance_model_says_how_fast_other_sizes_are():
    class Half:
        def rate(self, name, kind, gpus):
            return {1: 0.7, 2: None}[gpus]

    assert sizes_of_job("a", [Option(0, 4, 2.0)], 1, 2, Half()) == [JobSize(0, 1, 0.7), JobSize(0, 2, 1.0)]


def test_a_policy_sees_every_size_of_a_job_with_a_range():
    seen = []

    class Watches(Fifo):
        def decide(self, snapshot):
            seen.append([(size.gpus, size.rate) for size in snapshot.jobs.sizes(0)])
            return super().decide(snapshot)

    job = {"job": "a", "arrival": 0.0, "gpus": 2, "duration": 100.0, "min_gpus": 1, "max_gpus": 3}
    simulate([job], "1x4", Watches(), executor="acknowledged")
    assert seen[0] == [(1, 0.5), (2, 1.0), (3, 1.5)]


def test_a_job_that_is_stopping_runs_in_no_way():
    seen = set()

    class Watches(find_policy("srtf")):
        def decide(self, snapshot):
            jobs = snapshot.jobs
            seen.update(zip(jobs.phase.tolist(), (jobs.option >= 0).tolist()))
            return super().decide(snapshot)

    jobs = [
        {"job": name, "arrival": at, "gpus": 1, "duration": work}
        for name, at, work in (("a", 0.0, 900.0), ("b", 50.0, 90.0), ("c", 50.5, 9.0))
    ]
    simulate(jobs, "1x1", Watches(), executor=FaultyExecutor(np.array([900.0, 90.0, 9.0]), Faults(stop=(30.0, 30.0))))
    assert (int(Phase.CHECKPOINTING), False) in seen
    assert not {(int(Phase.CHECKPOINTING), True), (int(Phase.STOPPING), True)} & seen


def test_our_elastic_policies_see_the_sizes_that_jobs_name():
    """Pools of devices are shared out by a compiled reader of the same sizes; `jobs.sizes` is the readable one."""
    compared = []

    class Compares(Fifo):
        def decide(self, snapshot):
            jobs, kinds = snapshot.jobs, len(snapshot.cluster.types)
            for kind in range(kinds):
                curves = read_curves(snapshot, np.arange(len(jobs)), kind, 64)
                for job in range(len(jobs)):
                    own = slice(curves.first[job], curves.first[job + 1])
                    read = [(kind, gpus, rate) for gpus, rate in zip(curves.size[own].tolist(), curves.rate[own].tolist())]
                    compared.append((jobs.ids[job], read, [tuple(size) for size in jobs.sizes(job) if size.type == kind]))
            return super().decide(snapshot)

    ways = ("", "a:2=100", "a:1=100|a:2=60|a:4=40", "a:2=100|b:1=90|b:3=50", "b:4=10|b:4=8|b:8=5")
    ranges = ((1, 3), (2, 2), (2, 9), (1, 8))
    cells = [(text, least, most) for text in ways for least, most in ranges]
    jobs = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": 2, "duration": 100.0, "min_gpus": least, "max_gpus": most, "options": text, "type": "a"}
        for k, (text, least, most) in enumerate(cells)
    ]
    simulate(jobs, "a:2x4,b:2x8", Compares(), executor="acknowledged", until=1.0)
    assert [(job, read) for job, read, _ in compared] == [(job, named) for job, _, named in compared]
    assert sum(len(read) for _, read, _ in compared) > len(jobs)
