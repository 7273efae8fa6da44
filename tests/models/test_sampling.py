"""Short runs, a line through them, and how much they can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.core.policy import Source
from gantline.core.rng import stream
from gantline.models.sampling import RunResources, Sample, SampledRun, Sampler

CPU = RunResources(type=0, devices=0, cpus=32, memory=16)
GPU = RunResources(type=1, memory=12)


def sampled(sampler: Sampler, work: dict[int, float], **how: float) -> list[Sample]:
    rng = stream(1, 0, "sampling")
    return [sampler.measure(run, work[run.resources.type], rng, **how) for run in sampler.plan_runs([CPU, GPU])]


def test_two_runs_per_type_short_ones_first() -> None:
    runs = Sampler().plan_runs([CPU, GPU])
    assert runs == (SampledRun(CPU, 0.01), SampledRun(CPU, 0.02), SampledRun(GPU, 0.01), SampledRun(GPU, 0.02))


def test_a_run_takes_its_share_of_the_time_and_a_second_at_least() -> None:
    samples = sampled(Sampler(), {0: 5000.0, 1: 60.0})
    assert [sample.seconds for sample in samples] == [50.0, 100.0, 1.0, 1.2]


@given(work=st.floats(100.0, 1e6), startup=st.floats(0.0, 300.0), first=st.floats(0.0, 0.2), step=st.floats(0.01, 0.3))
def test_the_line_finds_start_up_and_speed_when_nothing_disturbs(work: float, startup: float, first: float, step: float) -> None:
    sampler = Sampler(shares=(first, first + step), shortest=0.0)
    run_times = [Sample(1, share, startup + share * work) for share in sampler.shares]
    if run_times[0].seconds == 0.0:
        return
    estimate = sampler.fit(run_times)[1]
    assert estimate.value == pytest.approx(startup + work, rel=1e-6)
    assert estimate.source == Source.PROFILED


def test_the_profiler_of_the_cluster_runs_start_up_alone_first() -> None:
    sampler = Sampler(shares=(0.0, 0.015), shortest=0.0)
    samples = sampled(sampler, {0: 8000.0, 1: 1000.0}, startup=12.0)
    assert [sample.seconds for sample in samples] == pytest.approx([12.0, 132.0, 12.0, 27.0])
    assert {kind: estimate.value for kind, estimate in sampler.fit(samples).items()} == pytest.approx({0: 8012.0, 1: 1012.0})


def test_looking_once_a_second_widens_the_range_a_hundredfold() -> None:
    sampler = Sampler(resolution=1.0)
    estimate = sampler.fit(sampled(sampler, {0: 5040.0, 1: 700.0}))[0]
    assert estimate.high - estimate.low == pytest.approx(197.0)  # the second at 1 % counts 98 times, at 2 % 99 times
    assert estimate.low <= 5040.0 <= estimate.high


def test_a_longer_run_that_was_faster_tells_a_bound_only() -> None:
    estimate = Sampler().fit([Sample(1, 0.01, 9.0), Sample(1, 0.02, 8.0)])[1]
    assert (estimate.value, estimate.low, estimate.high) == (9.0, 9.0, 400.0)


def test_runs_at_the_floor_tell_a_bound_only() -> None:
    estimate = Sampler().fit(sampled(Sampler(), {0: 5000.0, 1: 30.0}))[1]
    assert (estimate.value, estimate.high) == (1.0, 50.0)


def test_more_samples_than_two_are_fitted_together() -> None:
    sampler = Sampler(shares=(0.1, 0.2, 0.3))
    samples = [Sample(0, 0.1, 21.0), Sample(0, 0.2, 29.0), Sample(0, 0.3, 41.0)]
    line = np.polyfit([0.1, 0.2, 0.3], [21.0, 29.0, 41.0], 1)
    assert sampler.fit(samples)[0].value == pytest.approx(float(np.polyval(line, 1.0)))


def test_a_type_sampled_once_has_no_estimate() -> None:
    assert Sampler().fit([Sample(0, 0.01, 5.0), Sample(1, 0.01, 4.0), Sample(1, 0.02, 8.0)]).keys() == {1}


def test_the_same_stream_gives_the_same_errors() -> None:
    runs = [Sampler().measure(SampledRun(GPU, 0.02), 1000.0, stream(7, 3, "sampling"), error=0.2) for _ in range(2)]
    other = Sampler().measure(SampledRun(GPU, 0.02), 1000.0, stream(7, 4, "sampling"), error=0.2)
    assert runs[0] == runs[1]
    assert runs[0] != other


def test_a_run_ends_at_its_limit() -> None:
    sampler = Sampler(limit=30.0)
    assert {sample.seconds for sample in sampled(sampler, {0: 9000.0, 1: 8000.0})} == {30.0}


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: Sampler(shares=(0.02, 0.01)), "rising shares"),
        (lambda: Sampler(shares=(0.02,)), "two or more"),
        (lambda: Sampler(shares=(0.5, 1.5)), "outside 0 to 1"),
        (lambda: Sampler(shortest=-1.0), "negative"),
        (lambda: Sampler().plan_runs([]), "no device type"),
        (lambda: Sampler().measure(SampledRun(GPU, 0.01), 0.0, stream(0, 0, "x")), "positive duration"),
        (lambda: Sampler().fit([Sample(0, 0.01, 0.0), Sample(0, 0.02, 1.0)]), "no time at all"),
    ],
)
def test_mistakes_are_named(mistake: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mistake()  # type: ignore[operator]
