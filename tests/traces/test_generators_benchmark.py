"""The benchmark's workloads fit their clusters and differ in character."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.traces.generators import generate
from gantline.traces.generators.presets import benchmark_traces
from gantline.traces.stats import TraceStats, stats
from gantline.traces.trace import Trace

NAMES = ("steady", "bursty", "gangs", "swarm", "mixed")


@cache
def found(name: str) -> TraceStats:
    workload = benchmark_traces()[name]
    return stats(workload(seed=0), gpus=parse_cluster(workload.cluster).gpus)


def share_of(name: str, fewest: int) -> float:
    return sum(size.jobs for size in found(name).sizes if int(size.name) >= fewest)


def test_there_are_five_in_a_fixed_order() -> None:
    assert tuple(benchmark_traces()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_fits_its_cluster(name: str) -> None:
    workload = benchmark_traces()[name]
    cluster = parse_cluster(workload.cluster)
    assert workload.settings.gpus == cluster.gpus
    assert found(name).largest <= cluster.gpus // 2
    assert 2000 <= found(name).jobs <= 5000
    assert workload.summary


@pytest.mark.parametrize("name", NAMES)
def test_its_trace_is_that_of_the_generator_of_the_same_name(name: str) -> None:
    trace = benchmark_traces()[name](seed=4)
    assert generate(name, seed=4) == trace
    assert Trace.from_frame(trace.frame).frame.equals(trace.frame)


def test_the_load_can_be_changed_like_that_of_any_preset() -> None:
    assert stats(generate("swarm", seed=0, load=0.5), gpus=64).offered_load == pytest.approx(0.5, rel=0.01)


def test_each_has_its_own_character() -> None:
    assert found("steady").gap_variation == pytest.approx(1, abs=0.1)
    assert (found("bursty").gap_variation or 0) > 4
    assert max(found("bursty").hour_of_day) > 6 * min(found("bursty").hour_of_day)
    assert share_of("gangs", 16) == pytest.approx(0.5, abs=0.04)
    assert share_of("swarm", 4) == 0
    assert found("swarm").durations[0.99] < 2 * 3600 < found("steady").durations[0.99]
    assert found("mixed").deadlines == pytest.approx(0.6 * 2500, rel=0.1)


def test_the_mixed_workload_may_run_on_every_type_of_its_cluster() -> None:
    workload = benchmark_traces()["mixed"]
    options = workload().frame["options"].str.split("|").list.eval(pl.element().str.extract(r"^(\w+):"))
    assert set(map(tuple, options.to_list())) == {parse_cluster(workload.cluster).types} == {("v100", "p100", "k80")}
